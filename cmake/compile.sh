#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENTS…: through ccache, but for precompiled headers. One that comes out of the cache
# remembers the times of the files it was made from, and GCC would take the same files with other times for others.
ccache=$1; shift
case " $* " in
  *" c++-header "*) exec "$@" ;;
esac
CCACHE_SLOPPINESS=pch_defines,time_macros exec "$ccache" "$@"
