#!/usr/bin/env bash
# scenario.sh REHEARSE SCENARIO: a shipped scenario is valid, says what it shows in its first line, and
# gives the same bytes twice. Whether it does what it expects: tests/reports.
rehearse=$1 scenario=$2
[[ $(head -n 1 "$scenario") == "# "* ]] || { echo "$scenario: the first line has to say what it shows (# ...)"; exit 1; }
"$rehearse" check "$scenario" || { code=$?; ((code == 1)) || { echo "$scenario: check says $code"; exit 1; }; }

first=$("$rehearse" run "$scenario" --json) code=$?
((code <= 1)) || { echo "$scenario: run says $code"; exit 1; }
second=$("$rehearse" run "$scenario" --json)
[[ $first == "$second" ]] || { diff <(echo "$first") <(echo "$second") | head -n 20; echo "$scenario: two runs differ"; exit 1; }
