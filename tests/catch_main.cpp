// `main` of every test program, compiled once: Catch2 v2's implementation takes longer than most
// tests. Version 3 brings its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
