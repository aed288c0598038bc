$c wff class |- $. ${ $v p $. a $f wff p $. b $e |- p $. c $a |- p $. $}
${ $v p q $. $d p q $. d $f class p $. e $f wff q $. f $a |- p q $. $}
