// The one place that knows which generation of Catch2 is installed. Tests include this and nothing of Catch2 itself.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
