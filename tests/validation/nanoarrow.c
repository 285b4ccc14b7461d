// What nanoarrow's C library says of arrays that are valid, or were until something was done to them: its view is
// initialised from the schema, set to the array, and validated, minimally to fully.

#include "judge.h"
#include "nanoarrow/nanoarrow.h"

static enum Verdict Says(struct ArrowSchema* schema, struct ArrowArray* array, char* message, size_t room) {
  struct ArrowError error;
  struct ArrowArrayView view;
  ArrowErrorInit(&error);
  int refused = ArrowArrayViewInitFromSchema(&view, schema, &error) != NANOARROW_OK ||
                ArrowArrayViewSetArray(&view, array, &error) != NANOARROW_OK;
  // From the least that it checks to all.
  for (int level = NANOARROW_VALIDATION_LEVEL_MINIMAL; !refused && level <= NANOARROW_VALIDATION_LEVEL_FULL; ++level)
    refused = ArrowArrayViewValidate(&view, (enum ArrowValidationLevel)level, &error) != NANOARROW_OK;
  snprintf(message, room, "%s", error.message);
  return refused ? kRefused : kAccepted;
}

int main(void) {
  char peer[64];
  snprintf(peer, sizeof peer, "nanoarrow %s", ArrowNanoarrowVersion());
  return JudgeAll(peer, Says);
}
