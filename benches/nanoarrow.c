// What the bench asks nanoarrow for.

#include "nanoarrow/nanoarrow.h"

void* bench_view_new(struct ArrowSchema* schema) {
  struct ArrowArrayView* view = ArrowMalloc(sizeof *view);
  if (view != NULL && ArrowArrayViewInitFromSchema(view, schema, NULL) != NANOARROW_OK) {
    ArrowFree(view);
    view = NULL;
  }
  return view;
}

void bench_view_free(void* view) {
  ArrowArrayViewReset(view);
  ArrowFree(view);
}

// The structs and no buffer: what nanoarrow calls minimal.
int bench_view_check(void* view, struct ArrowArray* array) {
  return ArrowArrayViewSetArrayMinimal(view, array, NULL) != NANOARROW_OK ||
         ArrowArrayViewValidate(view, NANOARROW_VALIDATION_LEVEL_MINIMAL, NULL) != NANOARROW_OK;
}
