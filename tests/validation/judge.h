// Asks for a judgement in a process of its own: what is broken may break the one who judges.
#ifndef VALIDATION_JUDGE_H
#define VALIDATION_JUDGE_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

// Judges a case, and releases or leaks it: nothing of it outlives the process. Why it refuses goes into `message`.
typedef enum Verdict (*Judge)(struct ArrowSchema* schema, struct ArrowArray* array, char* message, size_t room);

static enum Verdict InProcessOfItsOwn(int64_t index, Judge judge, char* message, size_t room) {
  int ends[2];
  if (pipe(ends) != 0) exit(2);
  const pid_t child = fork();
  if (child < 0) exit(2);
  memset(message, 0, room);
  if (child == 0) {
    struct ArrowSchema schema;
    struct ArrowArray array;
    // A crash is a judgement here, and an endless loop too.
    freopen("/dev/null", "w", stderr);
    alarm(20);
    validation_case(index, &schema, &array);
    const enum Verdict verdict = judge(&schema, &array, message, room - 1);
    const ssize_t written = write(ends[1], message, strlen(message));
    _exit(written < 0 ? 2 : (int)verdict);
  }
  close(ends[1]);
  size_t length = 0;
  for (ssize_t got; (got = read(ends[0], message + length, room - 1 - length)) > 0;) length += (size_t)got;
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child) exit(2);
  if (WIFEXITED(status) && WEXITSTATUS(status) <= kAccepted) return (enum Verdict)WEXITSTATUS(status);
  return kCrashed;
}

static int JudgeAll(const char* peer, Judge judge) {
  char message[512];
  int wrong = 0;
  for (int64_t i = 0; i < validation_cases(); ++i) {
    const enum Verdict verdict = InProcessOfItsOwn(i, judge, message, sizeof message);
    wrong += validation_judge(i, peer, verdict, message);
  }
  return validation_finish(peer) != 0 || wrong != 0;
}

#endif
