#!/bin/sh
# Invents patients for three hospitals: north/stays.csv, south/stays.csv, east/stays.csv, each as
# that hospital's systems happen to write it. What is to be predicted, a return within 30 days,
# depends on the other columns in the same way everywhere. The same numbers every time.
#
#   sh make.sh [FOLDER]
set -eu
out=${1:-.}
mkdir -p "$out/north" "$out/south" "$out/east"

# hospital, seed, patients, mean age
patients() {
    awk -v hospital="$1" -v state="$2" -v patients="$3" -v age="$4" '
        # Park and Miller: the same in every awk.
        function random() { state = (state * 16807) % 2147483647; return state / 2147483647 }
        function normal(  i, sum) { for (i = 0; i < 12; i++) sum += random(); return sum - 6 }
        function within(x, low, high) { return x < low ? low : x > high ? high : x }
        BEGIN {
            for (i = 1; i <= patients; i++) {
                years = int(within(age + 15 * normal(), 18, 99))
                days = int(within(1 - 5 * log(1 - random()), 1, 60))
                lactate = within(1.6 + 0.7 * normal(), 0.3, 9)
                ward = int(3 * random())
                emergency = random() < 0.4
                risk = -1.6 + 0.05 * (years - 65) + 0.09 * (days - 5) + 0.9 * (lactate - 1.6)
                risk += 0.9 * emergency + (ward == 1 ? 0.7 : ward == 2 ? -0.4 : 0)
                back = random() < 1 / (1 + exp(-risk))
                if (hospital == "north") {
                    split("medicine surgery maternity", wards, " ")
                    split("no yes", answers, " ")
                    number = random() < 0.05 ? "" : sprintf("%.1f", lactate)
                    printf "%d,%d,%s,%s,%s,%s\n", years, days, number, wards[ward + 1],
                        answers[emergency + 1], answers[back + 1]
                } else if (hospital == "south") {
                    # A number for each patient, semicolons, decimal commas, other words.
                    split("INN CHI GYN", wards, " ")
                    number = sprintf("%.1f", lactate)
                    sub(/\./, ",", number)
                    printf "P%05d;%d;%s;%d;%s;%d;%d\n", 10000 + i, back, wards[ward + 1], years,
                        number, days, emergency
                } else {
                    # Another order, and lactate is not always measured.
                    split("medicine surgery maternity", wards, " ")
                    split("no yes", answers, " ")
                    number = random() < 0.15 ? "NA" : sprintf("%.1f", lactate)
                    printf "%s,%s,%s,%d,%d,%s\n", answers[back + 1], wards[ward + 1],
                        answers[emergency + 1], days, years, number
                }
            }
        }'
}

{ echo "age,days,lactate,ward,emergency,readmitted"; patients north 11 320 62; } > "$out/north/stays.csv"
{ echo "Fall;wieder;Station;Alter;Laktat;Tage;Notfall"; patients south 22 240 71; } > "$out/south/stays.csv"
{ echo "readmitted,ward,emergency,days,age,lactate"; patients east 33 150 66; } > "$out/east/stays.csv"
wc -l "$out"/*/stays.csv
