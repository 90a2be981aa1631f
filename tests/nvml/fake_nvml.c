/* A libnvidia-ml.so.1 for tests: the functions that SlotServe calls, told by the file FAKE_NVML.

   Read at every call, so a test can change cards, processes and errors in mid-flight. Lines:
     init CODE | driver VERSION | hang SECONDS
     card UUID TOTAL USED UTIL MILLIWATTS CELSIUS CODE NAME...    (-1: not supported)
     proc CARD C|G PID BYTES                                     (-1 bytes: not available)
   Compiled with -DOLD_DRIVER it lacks what came with driver 510. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CARDS 16
#define MOST_PROCESSES 64
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };

typedef struct { char uuid[80], name[96]; long long total, used; long util, power, celsius; int code; } card_t;
typedef struct { int card; char kind; unsigned pid; long long bytes; } proc_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } told_t;

static int is_open;

typedef struct { int init, cards, procs, hang; char driver[80]; card_t card[MOST_CARDS]; proc_t proc[MOST_PROCESSES]; } state_t;

static void load(state_t *s) {
    char line[512];
    memset(s, 0, sizeof *s);
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        card_t *c = &s->card[s->cards < MOST_CARDS ? s->cards : MOST_CARDS - 1];
        proc_t *p = &s->proc[s->procs < MOST_PROCESSES ? s->procs : MOST_PROCESSES - 1];
        if (sscanf(line, "init %d", &s->init) == 1) continue;
        if (sscanf(line, "hang %d", &s->hang) == 1) continue;
        if (sscanf(line, "driver %79s", s->driver) == 1) continue;
        if (sscanf(line, "card %79s %lld %lld %ld %ld %ld %d %95[^\n]", c->uuid, &c->total, &c->used,
                   &c->util, &c->power, &c->celsius, &c->code, c->name) == 8) s->cards++;
        else if (sscanf(line, "proc %d %c %u %lld", &p->card, &p->kind, &p->pid, &p->bytes) == 4) s->procs++;
    }
    fclose(file);
}

int nvmlInitWithFlags(unsigned flags) { state_t s; load(&s); (void)flags; if (!s.init) is_open++; return s.init; }
int nvmlShutdown(void) { if (!is_open) return UNINITIALIZED; is_open--; return OK; }
int fake_open_count(void) { return is_open; }
const char *nvmlErrorString(int code) { return code == 999 ? "Unknown Error" : "Some Error"; }

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    state_t s; load(&s);
    if (!is_open) return UNINITIALIZED;
    if (s.init) return s.init;
    if (s.hang) sleep((unsigned)s.hang);
    snprintf(text, length, "%s", s.driver);
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count) { state_t s; load(&s); *count = (unsigned)s.cards; return is_open ? OK : UNINITIALIZED; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    state_t s; load(&s);
    if (!is_open) return UNINITIALIZED;
    if (index >= (unsigned)s.cards) return INVALID;
    *handle = (void *)(long)(index + 1);
    return s.card[index].code;
}

static int find(void *handle, state_t *s, card_t **card) {
    long index = (long)handle - 1;
    load(s);
    if (!is_open) return UNINITIALIZED;
    if (index < 0 || index >= s->cards) return NOT_FOUND;
    *card = &s->card[index];
    return (*card)->code;
}

int nvmlDeviceGetUUID(void *h, char *text, unsigned n) { state_t s; card_t *c; int r = find(h, &s, &c); if (!r) snprintf(text, n, "%s", c->uuid); return r; }
int nvmlDeviceGetName(void *h, char *text, unsigned n) { state_t s; card_t *c; int r = find(h, &s, &c); if (!r) snprintf(text, n, "%s", c->name); return r; }

int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *info) {
    state_t s; card_t *c; int r = find(h, &s, &c);
    if (r) return r;
    if (c->used < 0) return NOT_SUPPORTED;
    info[0] = (unsigned long long)c->total; info[1] = (unsigned long long)(c->total - c->used); info[2] = (unsigned long long)c->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *h, unsigned *rates) {
    state_t s; card_t *c; int r = find(h, &s, &c);
    if (r) return r;
    if (c->util < 0) return NOT_SUPPORTED;
    rates[0] = (unsigned)c->util; rates[1] = 0;
    return OK;
}

int nvmlDeviceGetPowerUsage(void *h, unsigned *value) { state_t s; card_t *c; int r = find(h, &s, &c); if (r) return r; if (c->power < 0) return NOT_SUPPORTED; *value = (unsigned)c->power; return OK; }
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *value) { state_t s; card_t *c; int r = find(h, &s, &c); (void)sensor; if (r) return r; if (c->celsius < 0) return NOT_SUPPORTED; *value = (unsigned)c->celsius; return OK; }

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(void *h, char *info) {
    unsigned long long *field = (unsigned long long *)(info + 8); /* version, padding; total, reserved, free, used */
    state_t s; card_t *c; int r = find(h, &s, &c);
    if (r) return r;
    if (c->used < 0) return NOT_SUPPORTED;
    field[0] = (unsigned long long)c->total; field[1] = 0; field[2] = (unsigned long long)(c->total - c->used); field[3] = (unsigned long long)c->used;
    return OK;
}

static int list(void *h, char kind, unsigned *count, told_t *told) {
    state_t s; card_t *c; int r = find(h, &s, &c);
    unsigned found = 0, room = told ? *count : 0;
    if (r) return r;
    for (int i = 0; i < s.procs; i++) {
        if (s.proc[i].card != (int)((long)h - 1) || s.proc[i].kind != kind) continue;
        if (found < room) { told[found].pid = s.proc[i].pid; told[found].used = (unsigned long long)s.proc[i].bytes; told[found].gi = told[found].ci = 0xffffffffu; }
        found++;
    }
    *count = found;
    return found > room ? TOO_SMALL : OK;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *h, unsigned *count, told_t *told) { return list(h, 'C', count, told); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *h, unsigned *count, told_t *told) { return list(h, 'G', count, told); }
int nvmlDeviceGetMPSComputeRunningProcesses_v3(void *h, unsigned *count, told_t *told) { return list(h, 'M', count, told); }
#endif
