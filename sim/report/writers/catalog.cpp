#include "sim/report/writers/writer.h"

namespace sim::report {

const Catalog<Writer>& writer_catalog() {
  static constexpr const Writer* kEntries[] = {&kText, &kJson};
  static constexpr Catalog<Writer> kCatalog("output format", kEntries);
  return kCatalog;
}

}  // namespace sim::report
