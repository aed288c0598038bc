unit: a.cpp \
 b\ c.h d$$.h
