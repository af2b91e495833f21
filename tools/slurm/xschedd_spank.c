/* libxschedd-spank.so: Slurm's plugin. Adds --gpu-priority and --gpu-memory to srun, sbatch and salloc. In slurmstepd,
 * as root, it has `xschedctl slurm begin` put a claim before the tasks of a step with GPUs or shards start, gives the
 * tasks the shim, and has `xschedctl slurm end` remove the claim. All decisions are xschedctl's: this file must be
 * compiled for each release of Slurm, and gRPC does not belong in slurmstepd. Nothing here fails a job: every hook
 * returns success, and an error is one line in the job's standard error.
 *
 * In plugstack.conf: `optional libxschedd-spank.so [xschedctl=FILE] [path=FOLDERS] [limits=FILE] [limit_ms=N]`.
 *
 * Thread rule: Slurm calls the hooks of a process one after the other. */
/* clang-format off */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "child.h"

/* spank.h of some releases needs these before it. */
#include <stdint.h>

#include <slurm/spank.h>
/* clang-format on */

/* glibc has no snprintf_s.
 * NOLINTBEGIN(clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling) */

SPANK_PLUGIN(xschedd, 1)

/* Slurm's numbers of steps that have none of their own; spank.h has no names for them. */
static const uint32_t STEP_BATCH = 0xfffffffb, STEP_EXTERN = 0xfffffffc, STEP_INTERACTIVE = 0xfffffffa;
enum { MAX_LIMIT_MS = 10000, MAX_REQUEST = 64 };

static struct {
  char xschedctl[PATH_MAX];
  char path[1024];       /* where squeue is looked for */
  char limits[PATH_MAX]; /* empty: xschedctl's own default */
  int limit_ms;
} settings = {"/usr/bin/xschedctl", "/usr/local/bin:/usr/bin:/bin", "", 2000};

enum { PRIORITY, MEMORY, OPTIONS };
static char requested[OPTIONS][MAX_REQUEST + 1]; /* of --gpu-priority and --gpu-memory */
static int has_begun;                            /* this step's claim is to be removed */
static char cgroup[PATH_MAX];                    /* of the tasks, if Slurm makes none that the daemon sees */
static char answer[8192];                        /* lines of `slurm begin` that are still to be shown to the user */

static int is_number_or_word(const char* text) {
  char* end = NULL;
  long number = 0;
  if (strcmp(text, "low") == 0 || strcmp(text, "normal") == 0 || strcmp(text, "high") == 0) return 1;
  errno = 0;
  number = strtol(text, &end, 10);
  return end != text && *end == '\0' && errno == 0 && number >= -100 && number <= 100;
}

/* As ParseByteSize of xschedctl, which checks the range, too. */
static int is_size(const char* text) {
  size_t digits = strspn(text, "0123456789");
  const char* unit = text + digits;
  if (digits == 0) return 0;
  if (*unit == '\0') return 1;
  if (strchr("KMGTkmgt", *unit) == NULL) return 0;
  return unit[1] == '\0' || strcmp(unit + 1, "i") == 0 || strcmp(unit + 1, "iB") == 0;
}

/* Whoever submits a job does not see its log yet, so the terminal shows the line, too. */
static int on_option(int which, const char* text, int remote) {
  char* request = requested[which];
  snprintf(request, sizeof requested[which], "%s", text == NULL ? "" : text);
  if (remote || spank_context() != S_CTX_ALLOCATOR) return 0;
  if (which == PRIORITY && !is_number_or_word(request))
    slurm_error("xschedd: --gpu-priority=%s is not low, normal, high or a number from -100 to 100; it has no effect",
                request);
  if (which == MEMORY && !is_size(request))
    slurm_error("xschedd: --gpu-memory=%s is not a size such as 24G; it has no effect", request);
  return 0;
}

static struct spank_option options[OPTIONS] = {
    {"gpu-priority", "N", "GPU priority: low, normal, high, or -100 to 100; the partition may limit it", 1, PRIORITY,
     on_option},
    {"gpu-memory", "SIZE", "the most of each GPU's memory for a step, such as 24G; the partition may limit it", 1,
     MEMORY, on_option},
};

static void read_settings(int count, char** words) {
  for (int i = 0; i < count; ++i) {
    const char* word = words[i];
    if (strncmp(word, "xschedctl=/", 11) == 0) {
      snprintf(settings.xschedctl, sizeof settings.xschedctl, "%s", word + 10);
    } else if (strncmp(word, "path=", 5) == 0) {
      snprintf(settings.path, sizeof settings.path, "%s", word + 5);
    } else if (strncmp(word, "limits=", 7) == 0) {
      snprintf(settings.limits, sizeof settings.limits, "%s", word + 7);
    } else if (strncmp(word, "limit_ms=", 9) == 0) {
      long number = strtol(word + 9, NULL, 10);
      if (number > 0 && number <= MAX_LIMIT_MS) settings.limit_ms = (int)number;
    } else if (spank_context() == S_CTX_SLURMD) {
      slurm_error("xschedd: plugstack.conf: \"%s\" is not a setting; it has no effect", word);
    }
  }
}

int slurm_spank_init(spank_t spank, int count, char** words) {
  read_settings(count, words);
  for (int i = 0; i < OPTIONS; ++i)
    spank_option_register(spank, &options[i]);
  return ESPANK_SUCCESS;
}

/* slurmd sets these from the job's credential after it has taken the user's environment, so no user can remove them. */
static int has_gpus(spank_t spank) {
  static const char* const indices[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};
  static const char* const counts[] = {"SLURM_GPUS_ON_NODE", "SLURM_SHARDS_ON_NODE"};
  char value[4096];
  for (size_t i = 0; i < sizeof indices / sizeof *indices; ++i)
    if (spank_getenv(spank, indices[i], value, sizeof value) == ESPANK_SUCCESS && value[0] != '\0') return 1;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
    if (spank_getenv(spank, counts[i], value, sizeof value) == ESPANK_SUCCESS && atoi(value) > 0) return 1;
  return 0;
}

static void step_name(uint32_t step, char* text, size_t size) {
  if (step == STEP_BATCH || step == STEP_EXTERN || step == STEP_INTERACTIVE)
    snprintf(text, size, "%s", step == STEP_BATCH ? "batch" : step == STEP_EXTERN ? "extern" : "interactive");
  else
    snprintf(text, size, "%u", step);
}

/* Runs `xschedctl slurm VERB` for this step. Its output is in `text`, followed by a line if it failed. */
static void run_xschedctl(spank_t spank, const char* verb, char* text, size_t size) {
  char job[16], step[16], uid[16], path[sizeof settings.path + 8], conf[PATH_MAX + 16];
  uint32_t job_id = 0, step_id = 0;
  uid_t user = 0;
  int status = 0, error = 0, is_begin = strcmp(verb, "begin") == 0;
  const char* slurm_conf = getenv("SLURM_CONF");
  char *arguments[16], *environment[4];
  size_t n = 0, e = 0;
  if (spank_get_item(spank, S_JOB_ID, &job_id) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_STEPID, &step_id) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS) {
    snprintf(text, size, "trouble Slurm does not say which job this is\n");
    return;
  }
  snprintf(job, sizeof job, "%u", job_id);
  step_name(step_id, step, sizeof step);
  snprintf(uid, sizeof uid, "%u", (unsigned)user);
  arguments[n++] = settings.xschedctl;
  arguments[n++] = (char*)"slurm";
  arguments[n++] = (char*)verb;
  arguments[n++] = (char*)"--job";
  arguments[n++] = job;
  arguments[n++] = (char*)"--step";
  arguments[n++] = step;
  if (is_begin) {
    arguments[n++] = (char*)"--uid";
    arguments[n++] = uid;
    if (settings.limits[0] != '\0') {
      arguments[n++] = (char*)"--limits";
      arguments[n++] = settings.limits;
    }
  }
  char given[OPTIONS][MAX_REQUEST + 32];
  for (int i = 0; is_begin && i < OPTIONS; ++i) {
    if (requested[i][0] == '\0') continue;
    snprintf(given[i], sizeof given[i], "--%s=%.*s", options[i].name, MAX_REQUEST, requested[i]);
    arguments[n++] = given[i];
  }
  arguments[n] = NULL;
  snprintf(path, sizeof path, "PATH=%s", settings.path);
  environment[e++] = path;
  environment[e++] = (char*)"LC_ALL=C";
  if (slurm_conf != NULL && strlen(slurm_conf) < PATH_MAX) {
    snprintf(conf, sizeof conf, "SLURM_CONF=%s", slurm_conf);
    environment[e++] = conf;
  }
  environment[e] = NULL;
  error = child_run(arguments, environment, settings.limit_ms, text, size, &status);
  size_t length = strlen(text);
  if (length > 0 && text[length - 1] != '\n' && length + 1 < size) text[length++] = '\n', text[length] = '\0';
  const char* effect = is_begin ? "; the job runs without a GPU priority" : "";
  if (error == ETIMEDOUT)
    snprintf(text + length, size - length, "trouble %s took longer than %d ms%s\n", settings.xschedctl,
             settings.limit_ms, effect);
  else if (error != 0)
    snprintf(text + length, size - length, "trouble cannot run %s: %s%s\n", settings.xschedctl, strerror(error),
             effect);
  else if (status != 0 && length == 0)
    snprintf(text, size, "trouble %s ended with %d%s\n", settings.xschedctl, status, effect);
}

/* Puts the shim before what the user already preloads. */
static void add_preload(spank_t spank, const char* shim) {
  static char old[64 * 1024], all[sizeof old + PATH_MAX + 2];
  spank_err_t found = spank_getenv(spank, "LD_PRELOAD", old, sizeof old);
  if (found == ESPANK_NOSPACE || (found == ESPANK_SUCCESS && strstr(old, shim) != NULL)) return;
  if (found != ESPANK_SUCCESS || old[0] == '\0')
    snprintf(all, sizeof all, "%s", shim);
  else
    snprintf(all, sizeof all, "%s:%s", shim, old);
  spank_setenv(spank, "LD_PRELOAD", all, 1);
}

/* The rest of the line if it begins with this word; else NULL. */
static const char* after(const char* line, const char* word) {
  size_t length = strlen(word);
  return strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* Root, in the step's cgroup where Slurm makes one, before anything of the job runs. The job's standard error is not
 * connected yet. */
int slurm_spank_init_post_opt(spank_t spank, int count, char** words) {
  char text[sizeof answer];
  (void)count;
  (void)words;
  if (spank_context() != S_CTX_REMOTE || !has_gpus(spank)) return ESPANK_SUCCESS;
  has_begun = 1;
  run_xschedctl(spank, "begin", text, sizeof text);
  for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char* value = NULL;
    if ((value = after(line, "preload")) != NULL) {
      add_preload(spank, value);
    } else if ((value = after(line, "cgroup")) != NULL) {
      snprintf(cgroup, sizeof cgroup, "%s", value);
    } else {
      size_t length = strlen(answer);
      snprintf(answer + length, sizeof answer - length, "%s\n", line);
    }
  }
  return ESPANK_SUCCESS;
}

/* The first hook whose messages the user sees. Only the first node prints what is the same on every node. */
int slurm_spank_user_init(spank_t spank, int count, char** words) {
  uint32_t node = 0;
  (void)count;
  (void)words;
  if (spank_get_item(spank, S_JOB_NODEID, &node) != ESPANK_SUCCESS) node = 0;
  for (char* line = strtok(answer, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    const char* value = after(line, "say");
    if (value == NULL) {
      value = after(line, "trouble");
      slurm_spank_log("xschedd: %s", value != NULL ? value : line);
    } else if (node == 0) {
      slurm_spank_log("xschedd: %s", value);
    }
  }
  return ESPANK_SUCCESS;
}

/* In the process that becomes the task, as root. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char** words) {
  char file[PATH_MAX + 16];
  (void)spank;
  (void)count;
  (void)words;
  if (cgroup[0] == '\0') return ESPANK_SUCCESS;
  snprintf(file, sizeof file, "%s/cgroup.procs", cgroup);
  int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, "0", 1) != 1)
    slurm_spank_log("xschedd: cannot enter the cgroup %s: %s; the task runs without a GPU priority", cgroup,
                    strerror(errno));
  if (fd >= 0) close(fd);
  return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int count, char** words) {
  char text[1024];
  (void)count;
  (void)words;
  if (!has_begun || spank_context() != S_CTX_REMOTE) return ESPANK_SUCCESS;
  has_begun = 0;
  run_xschedctl(spank, "end", text, sizeof text);
  if (text[0] != '\0') slurm_info("xschedd: %s", text); /* into slurmd's log: the job has ended */
  return ESPANK_SUCCESS;
}

/* NOLINTEND(clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling) */
