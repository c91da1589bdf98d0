#!/bin/sh
# Invents a table of 60,000 stays in twelve hospitals with 40 columns, 16 of them texts, with gaps in
# some. The same numbers every time.
#
#   sh make.sh > stays.csv
set -eu
awk '
    # Park and Miller: the same in every awk.
    function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
    function normal(  i, sum) { for (i = 0; i < 12; i++) sum += random(); return sum - 6 }
    BEGIN {
        state = 7
        printf "hospital"
        for (c = 1; c <= 22; c++) printf ",value_%d", c
        for (c = 1; c <= 16; c++) printf ",text_%d", c
        print ",readmitted"
        for (row = 0; row < 60000; row++) {
            hospital = int(12 * random() * random()) + 1
            printf "hospital %d", hospital
            risk = -2 + 0.1 * hospital
            for (c = 1; c <= 22; c++) {
                x = normal() + (c == 5 ? hospital / 6 : 0)
                if (c <= 4) risk += 0.5 * x
                if (c > 19 && random() < 0.1) printf ",?"
                else printf c % 3 ? ",%.2f" : ",%d", 10 + (c % 3 ? 1 : 4) * x
            }
            for (c = 1; c <= 16; c++) {
                levels = 2 + 3 * (c - 1)
                level = int(levels * random() * random())
                if (c == 2) risk += level == 1 ? 0.8 : 0
                if (c == 9 && random() < 0.05) printf ",NULL"
                else printf ",%c%d", 64 + c, level
            }
            print random() < 1 / (1 + exp(-risk)) ? ",yes" : ",no"
        }
    }'
