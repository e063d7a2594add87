#include "sim/base/text.h"

#include "tests/support/catch.h"

using namespace sim;

TEST_CASE("digits are grouped by three", "[base]") {
  CHECK(group_digits(0) == "0");
  CHECK(group_digits(999) == "999");
  CHECK(group_digits(1000) == "1,000");
  CHECK(group_digits(6738415616) == "6,738,415,616");
  CHECK(group_digits(-123456) == "-123,456");
  CHECK(group_digits(INT64_MIN) == "-9,223,372,036,854,775,808");
}

TEST_CASE("a table is padded, aligned and free of trailing blanks", "[base]") {
  TextTable table({"phase", "peak"}, {false, true});
  table.add({"load", "1"});
  table.add({"größer", "12345"});
  table.add({"x"});
  CHECK(table.text(2) ==
        "  phase    peak\n"
        "  load        1\n"
        "  größer  12345\n"
        "  x\n");
}
