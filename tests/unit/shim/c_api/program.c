/* The C API in a C99 program without GPU work: with the shim preloaded, and without. Compiled with
 * XSCHEDD_DLSYM and with XSCHEDD_WEAK, and as C++ (program.cc). usage: program with|without|disabled */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client-shim/include/xschedd.h"

static int failures = 0;

static void expect(int condition, const char* what, int line) {
  if (condition) return;
  fprintf(stderr, "line %d: not so: %s\n", line, what);
  ++failures;
}
#define EXPECT(condition) expect((condition) ? 1 : 0, #condition, __LINE__)

#ifdef XSCHEDD_WEAK
static int has_shim(void) {
  return xschedd_version != 0;
}
#else
static int has_shim(void) {
  return xschedd_api_version() != 0;
}
#endif

/* The results of all functions without a shim. */
static void check_alike(int answer) {
  EXPECT(xschedd_set_priority(20) == answer);
  EXPECT(xschedd_set_weight(200) == answer);
  EXPECT(xschedd_set_deadline(5000) == answer);
  EXPECT(xschedd_set_stream_priority(0, 20) == answer);
  EXPECT(xschedd_set_stream_weight(0, 200) == answer);
  EXPECT(xschedd_set_stream_deadline(0, 5000) == answer);
  EXPECT(xschedd_hold(XSCHEDD_ALL_DEVICES, 1000) == answer);
  EXPECT(xschedd_release(0) == answer);
  EXPECT(xschedd_hold_stream(0, 1000) == answer);
  EXPECT(xschedd_release_stream(0) == answer);
}

static void check_invalid(void) {
  char name[300];
  xschedd_status status;
  xschedd_device_status device;
  memset(&status, 0, sizeof status);
  memset(&device, 0, sizeof device);
  EXPECT(xschedd_set_priority(101) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_priority(-101) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_stream_priority(0, 101) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_weight(10001) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_stream_weight(0, 10001) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_deadline(3600000001ULL) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_set_stream_deadline(0, 3600000001ULL) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_hold(64, 1) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_hold(-2, 1) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_hold(0, 0) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_hold(0, 3600000001ULL) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_hold_stream(0, 0) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_release(64) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_get_status(0) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_get_status(&status) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_get_device_status(0, &device) == XSCHEDD_ERROR_INVALID);
  device.size = sizeof device;
  EXPECT(xschedd_get_device_status(64, &device) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_get_device_status(-1, &device) == XSCHEDD_ERROR_INVALID);
  EXPECT(xschedd_get_device_status(0, 0) == XSCHEDD_ERROR_INVALID);
  memset(name, 'g', sizeof name);
  name[256] = '\0';
  EXPECT(xschedd_set_group(name) == XSCHEDD_ERROR_INVALID);
}

static void check_status(int state) {
  xschedd_status status;
  memset(&status, 0x5a, sizeof status);
  status.size = sizeof status;
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  EXPECT(status.size == sizeof status && status.state == state && status.client_id == 0);
  EXPECT(status.submitted == 0 && status.devices == 0 && status.own_held_ns == 0);
  EXPECT(status.schedules_streams == 0 && status.streams_held_ns == 0);
  /* A program of an earlier API: fields beyond its structures are not written. */
  memset(&status, 0x5a, sizeof status);
  status.size = 2 * sizeof(int);
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  EXPECT(status.size == 2 * sizeof(int) && status.state == state && status.client_id == 0x5a5a5a5a5a5a5a5aULL);
}

static void check_remembered(void) {
  xschedd_status status;
  status.size = sizeof status;
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): set by the library, which it does not read
  EXPECT(status.priority_hint == 20 && status.weight_hint == 200 && status.deadline_us == 5000);
  EXPECT(xschedd_set_priority(XSCHEDD_PRIORITY_NONE) == XSCHEDD_ERROR_NOT_CONNECTED);
  EXPECT(xschedd_set_weight(XSCHEDD_WEIGHT_NONE) == XSCHEDD_ERROR_NOT_CONNECTED);
  EXPECT(xschedd_set_deadline(XSCHEDD_DEADLINE_NONE) == XSCHEDD_ERROR_NOT_CONNECTED);
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  EXPECT(status.priority_hint == XSCHEDD_PRIORITY_NONE && status.weight_hint == 0 && status.deadline_us == 0);
  EXPECT(xschedd_schedule_streams(2) == XSCHEDD_OK);
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  EXPECT(status.schedules_streams == 1);
  EXPECT(xschedd_schedule_streams(0) == XSCHEDD_OK);
  EXPECT(xschedd_get_status(&status) == XSCHEDD_OK);
  EXPECT(status.schedules_streams == 0);
  EXPECT(xschedd_set_group("") == XSCHEDD_OK);
  EXPECT(xschedd_set_group("a") == XSCHEDD_OK);
  EXPECT(xschedd_set_group(0) == XSCHEDD_OK);
}

static void check_with(int answer, int state) {
  xschedd_device_status device;
  int result;
  EXPECT(xschedd_api_version() == XSCHEDD_API_VERSION);
  EXPECT(strcmp(xschedd_version(), XSCHEDD_EXPECTED_VERSION) == 0);
  for (result = XSCHEDD_ERROR_TOO_LATE - 1; result <= XSCHEDD_OK + 1; ++result) {
    EXPECT(strlen(xschedd_result_text(result)) > 0);
  }
  check_invalid();
  check_status(state);
  check_alike(answer);
  memset(&device, 0x5a, sizeof device);
  device.size = sizeof device;
  EXPECT(xschedd_get_device_status(0, &device) == answer);
  EXPECT(device.size == sizeof device && device.held == 0 && device.submitted == 0 && device.passthrough == 0);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  errno = ERANGE;
  if (strcmp(mode, "without") == 0) {
    EXPECT(!has_shim());
#ifndef XSCHEDD_WEAK
    {
      xschedd_status status;
      xschedd_device_status device;
      status.size = sizeof status;
      device.size = sizeof device;
      EXPECT(xschedd_version()[0] == '\0' && xschedd_result_text(0)[0] == '\0');
      check_alike(XSCHEDD_ERROR_NO_SHIM);
      EXPECT(xschedd_set_group("a") == XSCHEDD_ERROR_NO_SHIM);
      EXPECT(xschedd_schedule_streams(1) == XSCHEDD_ERROR_NO_SHIM);
      EXPECT(xschedd_get_status(&status) == XSCHEDD_ERROR_NO_SHIM);
      EXPECT(xschedd_get_device_status(0, &device) == XSCHEDD_ERROR_NO_SHIM);
    }
#endif
  } else if (!has_shim()) {
    EXPECT(has_shim());
  } else if (strcmp(mode, "with") == 0) {
    check_with(XSCHEDD_ERROR_NOT_CONNECTED, XSCHEDD_STATE_IDLE);
    check_remembered();
  } else if (strcmp(mode, "disabled") == 0) {
    check_with(XSCHEDD_ERROR_INERT, XSCHEDD_STATE_INERT);
    EXPECT(xschedd_set_group("a") == XSCHEDD_ERROR_INERT);
    EXPECT(xschedd_schedule_streams(1) == XSCHEDD_ERROR_INERT);
  } else {
    fprintf(stderr, "usage: program with|without|disabled\n");
    return 2;
  }
  EXPECT(errno == ERANGE);
  return failures > 0;
}
