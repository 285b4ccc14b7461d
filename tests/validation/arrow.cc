// What Arrow C++ says of arrays that are valid, or were until something was done to them: they are imported, and what
// comes of that is validated in full.

#include "arrow/api.h"
#include "arrow/c/bridge.h"
#include "judge.h"

static enum Verdict Says(ArrowSchema* schema, ArrowArray* array, char* message, size_t room) {
  const auto says = [&]() -> arrow::Status {
    ARROW_ASSIGN_OR_RAISE(auto field, arrow::ImportField(schema));
    ARROW_ASSIGN_OR_RAISE(auto imported, arrow::ImportArray(array, field->type()));
    return imported->ValidateFull();
  };
  const arrow::Status status = says();
  snprintf(message, room, "%s", status.ToString().c_str());
  return status.ok() ? kAccepted : kRefused;
}

int main() {
  const std::string peer = "Arrow C++ " + arrow::GetBuildInfo().version_string;
  return JudgeAll(peer.c_str(), Says);
}
