const Optimizer kLion{.name = "lion"};
