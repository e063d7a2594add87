const Optimizer kAdamW{.name = "adamw"};
