#!/usr/bin/env bash
# framework_names.sh TREE: no framework, trainer or library of training is named in code outside its
# own file, the hooks, the input language (validation sets write scenarios in it) and the table of
# operator implementations: everything else works on values. The forbidden names are those of the
# files in the three catalogs.
cd "$1" || exit 2
export LC_ALL=C

# torch_fsdp1.cpp forbids "fsdp". PyTorch and NCCL themselves are the ground that all of them stand on.
names=$(find sim/program/{frameworks,trainers,libraries} -name '*.cpp' -printf '%f\n' 2>/dev/null |
  sed -E 's/\.cpp$//; s/^torch_//; s/[0-9]+$//' | grep -vxE 'catalog|none|torch|pytorch|nccl' | sort -u | paste -sd '|')
[[ -n $names ]] || exit 0
may_name='^sim/(program/(frameworks|trainers|libraries|hooks)/|scenario/|study/validation/|plan/operators/|plan/implementation\.h)'

# Comments may use the words, and so may prose (a string with a space in it); #include names files.
hits=$(find sim \( -name '*.h' -o -name '*.cpp' \) | grep -vE "$may_name" | sort |
  NAMES=$names xargs -r perl -ne '
    ($code = $_) =~ s{//.*|^#include.*|"[^" ]* [^"]*"}{}g;
    ($split = $code) =~ s{([a-z0-9])([A-Z])}{$1_$2}g;  # TorchFsdp -> Torch_Fsdp
    print "$ARGV:$.: $_" if "$code $split" =~ /(?<![a-z-])k?($ENV{NAMES})/i;
    close ARGV if eof;  # line numbers start again with each file
  ')
[[ -z $hits ]] || { echo "$hits"; echo "(none of these may be named there: $names)"; exit 1; }
