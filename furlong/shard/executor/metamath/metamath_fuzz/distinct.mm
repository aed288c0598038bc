$c ( ) -> A. wff set |- $.  $( A comment. $)
$v ph ps ch x y $.
wph $f wff ph $.  wps $f wff ps $.  wch $f wff ch $.
vx $f set x $.  vy $f set y $.
wi $a wff ( ph -> ps ) $.
wal $a wff A. x ph $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
ax-2 $a |- ( ( ph -> ( ps -> ch ) ) -> ( ( ph -> ps ) -> ( ph -> ch ) ) ) $.
${ min $e |- ph $.  maj $e |- ( ph -> ps ) $.  ax-mp $a |- ps $. $}
${ ax-gen.1 $e |- ph $.  ax-gen $a |- A. x ph $. $}
${ $d x ph $.  ax-5 $a |- ( ph -> A. x ph ) $. $}
${ $d y ph $. five $p |- ( ph -> A. y ph ) $= wph vy ax-5 $. $}
${ $d y ph $. opt $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $. $}
wrong $p |- ( ph -> A. x ph ) $= wph vx ax-5 $.
