$[ a.mm $] $c a $.
