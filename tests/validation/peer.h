// What tests/validation/peer.rs offers to the programs that ask an implementation of Arrow for its judgement.
#ifndef VALIDATION_PEER_H
#define VALIDATION_PEER_H

#include "arrow_device_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum Verdict { kRefused = 0, kAccepted = 1, kCrashed = 2 };

// How many cases there are.
int64_t validation_cases(void);

// Writes the schema and the array of a case, which the caller owns.
void validation_case(int64_t index, struct ArrowSchema* schema, struct ArrowArray* array);

// Notes what `peer` says of a case, and gives 0 if that is what Rust says, or is explained; else it is printed.
int validation_judge(int64_t index, const char* peer, enum Verdict verdict, const char* message);

// Prints what was judged, and gives 0 if each explanation for `peer` was needed.
int validation_finish(const char* peer);

#ifdef __cplusplus
}
#endif

#endif
