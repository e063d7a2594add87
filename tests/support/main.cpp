// Catch2 v2's main, compiled once (test_support).
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
