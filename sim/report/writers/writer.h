// One form of a report (writers/*.cpp; listed in writers/catalog.cpp).
#pragma once

#include <string>
#include <string_view>

#include "sim/base/catalog.h"
#include "sim/report/report.h"

namespace sim::report {

struct WriteOptions {
  bool colour = false;  // terminal escapes, where the form knows colours
};

struct Writer {
  std::string_view name;
  std::string_view description;
  std::string (*write)(const Report& report, const WriteOptions& options);
};

extern const Writer kText, kJson;
const Catalog<Writer>& writer_catalog();

}  // namespace sim::report
