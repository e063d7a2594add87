// DeepSpeed may be named in a comment,
const char* kHint = "and DeepSpeed in a sentence";
void simulate(const Scenario& scenario) {
  if (scenario.framework == "deepspeed") {
  }
}
