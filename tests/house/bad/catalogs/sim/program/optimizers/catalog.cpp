static constexpr const Optimizer* kEntries[] = {&kAdamW};
static constexpr Catalog<Optimizer> kCatalog{"optimizer", kEntries};
