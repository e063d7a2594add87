#include "sim/base/units_text.h"

#include "tests/support/catch.h"

using namespace sim;

TEST_CASE("bytes: decimal and binary units differ, fractions round to the nearest byte", "[base]") {
  CHECK(parse_bytes("80 GiB") == 80_GiB);
  CHECK(parse_bytes("80GB") == 80_GB);
  CHECK(parse_bytes("81559 MiB") == 81559_MiB);
  CHECK(parse_bytes("0 B") == 0_B);
  CHECK(parse_bytes("39.39 GiB")->count == 42294690447);
  CHECK(parse_bytes("1.5 KiB") == 1536_B);
}

TEST_CASE("bytes: large whole numbers keep every digit", "[base]") {
  CHECK(parse_bytes("42299424768 B")->count == 42299424768);
  CHECK(parse_bytes("9007199254740993 B")->count == 9007199254740993);
}

TEST_CASE("bytes: what is not a quantity is refused", "[base]") {
  for (const char* text : {"",
                           "80",
                           "80 gib",
                           "80 Gib",
                           "80  GiB",
                           " 80 GiB",
                           "80 GiB ",
                           "-1 GiB",
                           "+1 GiB",
                           ".5 GiB",
                           "1. GiB",
                           "1e3 MiB",
                           "0x10 B",
                           "1,000 MiB",
                           "GiB",
                           "80 GiB/s",
                           "99999999999999999999 B",
                           "9999999 TiB",
                           "nan B",
                           "inf B"}) {
    INFO(text);
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("rates and durations", "[base]") {
  CHECK(parse_byte_rate("900 GB/s") == 900_GBps);
  CHECK(parse_byte_rate("400 Gb/s") == 400_Gbps);
  CHECK(parse_byte_rate("1.5 GiB/s")->per_second == Approx(1.5 * 1073741824));
  CHECK(parse_flop_rate("19.5 TFLOP/s")->per_second == Approx(19.5e12));
  CHECK(parse_duration("30 min") == 1800_s);
  CHECK(parse_duration("1.5 us") == 1500_ns);
  for (const char* text : {"900", "900 GB", "900 Gbps", "/s", "1 /s"})
    CHECK_FALSE(parse_byte_rate(text));
  for (const char* text : {"312", "312 TFLOPS", "312 TFLOP"}) CHECK_FALSE(parse_flop_rate(text));
  for (const char* text : {"30", "30 minutes", "200 h 3 s", "9999999 h"})
    CHECK_FALSE(parse_duration(text));
}

TEST_CASE("quantities for people", "[base]") {
  CHECK(to_text(Bytes{40286896128}) == "37.52 GiB");
  CHECK(to_text(64_MiB) == "64.00 MiB");
  CHECK(to_text(512_B) == "512 B");
  CHECK(to_text(-(64_MiB)) == "-64.00 MiB");
  CHECK(to_text(1465_GiB) == "1465.00 GiB");
  CHECK(to_text(300_GBps) == "300.0 GB/s");
  CHECK(to_text(2039_GBps) == "2039.0 GB/s");
  CHECK(to_text(1234_ms) == "1.234 s");
  CHECK(to_text(56'700_us) == "56.7 ms");
  CHECK(to_text(Duration{12}) == "12 ps");
}

TEST_CASE("the exact text parses back", "[base]") {
  CHECK(to_text_exact(80_GiB) == "80 GiB");
  CHECK(to_text_exact(Bytes{42294690447}) == "39.39 GiB");
  CHECK(to_text_exact(Bytes{42299424768}) == "42299424768 B");
  CHECK(to_text_exact(0_B) == "0 B");
  CHECK(to_text_exact(1536_B) == "1536 B");
  for (std::int64_t n : {1ll, 999ll, 1000ll, 1024ll, 85198045184ll, 150109880320ll, 1ll << 52}) {
    CHECK(parse_bytes(to_text_exact(Bytes{n})) == Bytes{n});
  }
}
