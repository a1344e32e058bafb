#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENTS…: through ccache, but for precompiled headers. One that comes out of the cache
# remembers the times of the files it was made from, and GCC would take the same files with other times for others. What
# is compiled with one is found in the cache by a sum of what it was made from, macros too: its bytes are others each
# time.
ccache=$1; shift
case " $* " in
  *" c++-header "*)
    "$@" || exit
    header='' skip=''
    for argument do
      shift
      case $skip in
        -o) header=$argument skip=''; continue ;;
        ?*) skip=''; continue ;;
      esac
      case $argument in
        -o | -MF | -MT) skip=$argument; continue ;;
        -c | -MD) continue ;;
      esac
      set -- "$@" "$argument"
    done
    "$@" -E -P -dD > "$header.text" || exit
    md5sum < "$header.text" > "$header.sum"
    rm "$header.text"
    exit ;;
esac
CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros exec "$ccache" "$@"
