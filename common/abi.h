// The shared-memory ABI between xschedd and a client: this header is the specification.
//
// A client has two memory objects, both made and sealed by the daemon and handed over with the preamble (preamble.h):
//
//   board   written by the daemon only. The client holds a descriptor through which it can only be mapped read-only
//           (F_SEAL_FUTURE_WRITE, or its mode: daemon/registry/channel.h): a client cannot open its own gate, nor
//           harm another's.
//   ledger  written by the client only. The daemon treats each byte of it as hostile: it reads a value once, checks it,
//           and uses the copy. No lock is shared, so that either side may die or stop at any instruction.
//
//        xschedd                                                     client process
//   ┌───────────────┐  gate words, summary, lease   ┌───────┐   ┌──────────────────────────┐
//   │ scheduler     ├──────────────────────────────►│ board ├──►│ launch path (any thread) │
//   │               │                               └───────┘   │ agent thread             │
//   │               │  transitions, counters       ┌────────┐   │                          │
//   │ registry      │◄─────────────────────────────┤ ledger │◄──┤                          │
//   └───────────────┘                              └────────┘   └──────────────────────────┘
//        wake-ups:  FUTEX_WAKE on a gate word ────────────────►  (only if LedgerDevice::waiters is not 0)
//                   eventfd  ◄─────────────────────────────────  (only if BoardControl::daemon_sleeping is 1)
//
// Shared memory names a device by its slot: the client's own device ordinal (0 .. kMaxDevices-1). The client tells the
// daemon which physical device (PCI address) a slot is by DeviceAttached (proto/xschedd/v1/session.proto).
//
// The gate word and its states
//   bit 0  kHeld     the client must not submit work to this device
//   bit 1  kTracked  the client must report its transitions, keep its window and count what it submits
//   bits 2 to 6      hints to a tracked client: kGuarded, kAwaited, kTellsWaits, kMaySpin, kCountMayWait (below)
//   bits 8..31       generation: changes with every write, so that a futex wait cannot miss a change (ABA)
//
//     open, untracked  0          submit. Nothing else: this is the hot path.
//     open, tracked    kTracked   report busy, keep the window, submit
//     held             kHeld      (with or without kTracked) report busy, FUTEX_WAIT on the word until the gate is not
//                                 held, or until BoardControl::lease_until_ns has passed: then the gate does not bind
//   Every change between these three is the daemon's, and any is legal.
//
// `summary` is non-zero while any slot has a flag. The hot path reads this one word, so that it need not know which
// device a launch is for. The daemon writes the word of the slot first, then the summary: a client that was led to the
// words by the summary finds there at least what the summary announced. Only the words decide.
//
// Lease: a word with flags binds only while CLOCK_MONOTONIC < lease_until_ns. The daemon renews the lease while it
// lives and a word of this board has flags. A client whose lease has run out runs freely (fails open).
//
// Transitions: when a tracked client becomes busy or idle on a device, it (1) writes LedgerDevice::busy, (2) appends a
// Transition to the ring and publishes it by ring_head, (3) writes the eventfd if daemon_sleeping is 1. A full ring
// drops the record and adds one to `lost`. A daemon that finds that either has changed reads the levels
// (LedgerDevice::busy), which are the truth; earlier daemons read the records, too.
// A busy client whose deadline changes publishes it and appends another record of its kind.
//
// Where the word has kTellsWaits, a busy client also says when its host begins to wait for the device (kWaits: it is in
// a call that waits, or found no room in its window and is still far ahead), and when it goes on (kBusy).
//
// Busy is a lease, too (from version 2): a client with a busy slot increments LedgerControl::renewals at least every
// kRenewNs. If the counter stands still for several times that, the process is stopped, frozen or dumping core: it
// counts as idle, and holds no other client, until the counter moves again or a record arrives. Only a change of the
// value has a meaning, because a client in another time namespace has another clock. Version 1 has no such word: there,
// busy stays busy.
//
// Time slices (from version 3): how long a process of this client may use the device before the device's own scheduling
// gives another process its turn. The daemon writes the wanted slice into Gate::slice_us. The client sets it where the
// driver allows that, reads it back, and reports what is in force in LedgerSlice. A slice applies only while the word
// beside it has a flag; 0, and the end of a session, mean the driver's own. Nothing depends on the client's answer.
//
// Memory (from version 4): the daemon writes into Gate::memory_limit the most bytes of device memory that this client
// may have on the device. It applies always, also while the word has no flag; a client that has more keeps it, and is
// refused new allocations. The client counts what it has allocated, and how often it refused, in LedgerMemory.
// Cooperative: the driver knows nothing of it.
//
// The memory orders of each field are given beside it as (writer / reader). They are relaxed where no other data
// depends on the value. Field offsets are asserted below and hashed into kLayoutHash. A later version may only append,
// so that both sides serve an older peer with the same structs (versions.h). Both compare version and hash before use.
//
// Thread rule: none of its own; see board.h and ledger.h for who may call what.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace xschedd::abi {

inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::uint32_t kBoardMagic = 0x44425358;   // "XSBD"
inline constexpr std::uint32_t kLedgerMagic = 0x474c5358;  // "XSLG"
inline constexpr std::uint32_t kMaxDevices = 64;
// A client has at most two transitions for each burst of work; the levels make up for records that do not fit. With
// this size a ledger has two pages.
inline constexpr std::uint32_t kRingSize = 128;     // records; a power of two
inline constexpr std::size_t kLine = 64;            // bytes; one cache line
inline constexpr std::uint32_t kRenewalsSince = 2;  // version
inline constexpr std::uint64_t kRenewNs = 50'000'000;
inline constexpr std::uint32_t kSlicesSince = 3;  // version
inline constexpr std::uint32_t kMemorySince = 4;  // version

// ---- gate word -----------------------------------------------------------------------------------------------------
inline constexpr std::uint32_t kHeld = 1u << 0;
inline constexpr std::uint32_t kTracked = 1u << 1;
inline constexpr std::uint32_t kFlagMask = kHeld | kTracked;
// With kTracked, not held: open although a more important client is busy (the guard's turn). A client that does not
// know this flag merely has a wider window. The flags from here on are not part of any version's layout.
inline constexpr std::uint32_t kGuarded = 1u << 2;
// With kTracked: it must report soon that it is idle, or, held, that its launches have ended. Another client is held
// until then, or the daemon compares its times. A client that does not know this flag always reports at once; under a
// daemon that does not, the report may come 1.5 ms late.
inline constexpr std::uint32_t kAwaited = 1u << 3;
// With kTracked, not held: the client reports kWaits, too. A client that does not know this flag never does, and then
// no other client is held only while it waits.
inline constexpr std::uint32_t kTellsWaits = 1u << 4;
// With kHeld: a more important client holds it, and no turn or share; a held thread may spin for a while before it
// sleeps. A client that does not know this flag sleeps at once.
inline constexpr std::uint32_t kMaySpin = 1u << 5;
// With kTellsWaits: between its reports LedgerDevice::submitted may be 1.5 ms old, else 0.25 ms. A client that does not
// know this flag publishes it as often without need.
inline constexpr std::uint32_t kCountMayWait = 1u << 6;
inline constexpr std::uint32_t kGenerationShift = 8;

using Word = std::atomic<std::uint32_t>;
using Counter = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && Counter::is_always_lock_free, "shared between processes: must be lock-free");
static_assert(sizeof(Word) == 4 && sizeof(Counter) == 8);

// ---- board: the daemon writes, the client reads --------------------------------------------------------------------
struct alignas(kLine) BoardHeader {
  std::uint32_t magic;         // kBoardMagic; written before the descriptor is handed over, then constant
  std::uint32_t version;       // what both sides agreed on: kVersion, or an older one (versions.h)
  std::uint64_t layout_hash;   // of that version
  std::uint32_t device_slots;  // kMaxDevices
};

struct alignas(kLine) BoardSummary {
  Word flags;  // non-zero: some slot has a flag (release / acquire: the hot path's one load)
};

struct alignas(kLine) BoardControl {
  Counter lease_until_ns;  // CLOCK_MONOTONIC (relaxed / relaxed: a late view only shortens the lease)
  Counter ring_tail;       // records consumed (release: slots before it may be reused / acquire)
  Word daemon_sleeping;    // 1: write the eventfd after a push (seq_cst / seq_cst: Dekker with ring_head)
};

struct alignas(kLine) Gate {
  Word word;          // flags and generation (seq_cst: Dekker with waiters / acquire); the futex word
  Word window_us;     // most GPU time in flight, µs; 0: no limit (written before word; relaxed / relaxed)
  Word window_floor;  // launches always allowed in flight whatever their duration (written before word; relaxed /
                      // relaxed)
  Word slice_us;      // from version 3: time slice, µs; 0: the driver's own (written before word; relaxed / relaxed)
  Counter memory_limit;  // from version 4: most bytes of device memory; 0: no limit (relaxed / relaxed)
};

struct Board {
  BoardHeader header;
  BoardSummary summary;
  BoardControl control;
  Gate gates[kMaxDevices];
};

// ---- ledger: the client writes, the daemon reads -------------------------------------------------------------------
enum class TransitionKind : std::uint32_t { kBusy = 1, kIdle = 2, kWaits = 3 };
// LedgerDevice::busy. The daemon takes any other value for kIdle.
enum class Level : std::uint32_t { kIdle = 0, kBusy = 1, kWaits = 2 };

struct Transition {
  std::uint64_t
      time_ns;         // CLOCK_MONOTONIC of the client's observation; a hint, the daemon uses its own clock to decide
  std::uint32_t kind;  // TransitionKind
  std::uint32_t slot;  // device slot
};

struct alignas(kLine) LedgerHeader {
  std::uint32_t magic;        // kLedgerMagic; written by the daemon at creation
  std::uint32_t version;      // as in the board's
  std::uint64_t layout_hash;  // the same
};

struct alignas(kLine) LedgerControl {
  Counter ring_head;  // records published (seq_cst: publishes the record, Dekker with daemon_sleeping / acquire)
  Counter lost;       // records dropped because the ring was full (release / acquire)
  Counter renewals;   // from version 2: grows while a slot is busy (relaxed / relaxed: only that it changes counts)
};

struct alignas(kLine) LedgerDevice {
  Word busy;            // Level: whether there is unfinished work (release, before the ring record / acquire)
  Word waiters;         // threads waiting on the gate word (seq_cst: Dekker with the gate word / seq_cst)
  Word in_flight;       // launches believed unfinished while tracked (relaxed / relaxed)
  Word window_limit;    // launches the window allows at the moment; 0: no limit (relaxed / relaxed)
  Counter submitted;    // work items submitted while tracked (relaxed / relaxed)
  Counter completed;    // of these, known to have finished (release / acquire, before `submitted`)
  Counter gpu_time_ns;  // GPU time measured while tracked, overlap counted once (relaxed / relaxed)
  Counter held_ns;      // time threads waited at the gate (relaxed / relaxed)
  Counter passthrough;  // calls let through ungated by configuration (relaxed / relaxed)
  Counter deadline_ns;  // CLOCK_MONOTONIC: the deadline of the most urgent unfinished work; 0: none (release,
                        // before the ring record / acquire)
};

// What the client did with Gate::slice_us. The daemon takes any other value for kNotAsked.
enum class SliceState : std::uint32_t {
  kNotAsked = 0,  // none wanted, or not tried yet: a client tries while it is busy
  kInForce = 1,   // all of the client's known work on the device has it, read back
  kNotHere = 2,   // not available: by the client's vendor, or by the way in which it uses the device
  kRefused = 3,   // the driver refuses it, or reports success and does not keep it
  kStalled = 4,   // removed for a while: with it, none of the client's work ended for a second
};

// A line of LedgerDevice is full, so this is an array of its own.
struct LedgerSlice {
  Word state;  // SliceState (relaxed / relaxed: shown only)
  Word us;     // with kInForce: the time slice; else 0 (relaxed / relaxed)
};

// The client's own account of device memory. Nothing but the client's own limit and what is shown depends on it.
struct LedgerMemory {
  Counter bytes;    // counted as allocated on the device, of every kind (relaxed / relaxed)
  Counter refused;  // allocations refused because of a limit (relaxed / relaxed)
};

struct Ledger {
  LedgerHeader header;
  LedgerControl control;
  LedgerDevice devices[kMaxDevices];
  Transition ring[kRingSize];
  LedgerSlice slices[kMaxDevices];   // from version 3
  LedgerMemory memory[kMaxDevices];  // from version 4
};

// ---- layout, fixed for version 4 -----------------------------------------------------------------------------------
static_assert(sizeof(BoardHeader) == 64 && sizeof(BoardSummary) == 64 && sizeof(BoardControl) == 64);
static_assert(sizeof(Gate) == 64 && sizeof(LedgerDevice) == 64 && sizeof(LedgerControl) == 64);
static_assert(sizeof(Transition) == 16);
static_assert(offsetof(Board, summary) == 64 && offsetof(Board, control) == 128 && offsetof(Board, gates) == 192);
static_assert(offsetof(BoardControl, ring_tail) == 8 && offsetof(BoardControl, daemon_sleeping) == 16);
static_assert(offsetof(Gate, window_us) == 4 && offsetof(Gate, window_floor) == 8 && offsetof(Gate, slice_us) == 12);
static_assert(offsetof(Gate, memory_limit) == 16);
static_assert(offsetof(Ledger, control) == 64 && offsetof(Ledger, devices) == 128);
static_assert(offsetof(Ledger, ring) == 128 + 64 * kMaxDevices);
static_assert(offsetof(Ledger, slices) == 128 + 64 * kMaxDevices + 16 * kRingSize);
static_assert(offsetof(Ledger, memory) == offsetof(Ledger, slices) + sizeof(std::uint64_t) * kMaxDevices);
static_assert(sizeof(LedgerMemory) == 16 && offsetof(LedgerMemory, refused) == 8);
static_assert(sizeof(LedgerSlice) == 8 && offsetof(LedgerSlice, us) == 4);
static_assert(offsetof(LedgerControl, lost) == 8 && offsetof(LedgerControl, renewals) == 16);
static_assert(offsetof(LedgerDevice, waiters) == 4 && offsetof(LedgerDevice, submitted) == 16);
static_assert(offsetof(LedgerDevice, gpu_time_ns) == 32 && offsetof(LedgerDevice, passthrough) == 48 &&
              offsetof(LedgerDevice, deadline_ns) == 56);

namespace detail {
// FNV-1a over the numbers that make the layout: two builds agree on the hash exactly when they agree on these.
constexpr std::uint64_t Mix(std::uint64_t hash, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) {
    hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3ull;
  }
  return hash;
}
constexpr std::uint64_t HashLayout() {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (std::uint64_t value : {std::uint64_t{kVersion},
                              std::uint64_t{kMaxDevices},
                              std::uint64_t{kRingSize},
                              std::uint64_t{kFlagMask},
                              std::uint64_t{kGenerationShift},
                              sizeof(Board),
                              sizeof(Ledger),
                              sizeof(Transition),
                              offsetof(Board, summary),
                              offsetof(Board, control),
                              offsetof(Board, gates),
                              offsetof(BoardControl, ring_tail),
                              offsetof(BoardControl, daemon_sleeping),
                              offsetof(Gate, window_us),
                              offsetof(Gate, window_floor),
                              offsetof(Gate, slice_us),
                              offsetof(Ledger, control),
                              offsetof(Ledger, devices),
                              offsetof(Ledger, ring),
                              offsetof(Ledger, slices),
                              offsetof(LedgerControl, lost),
                              offsetof(LedgerControl, renewals),
                              offsetof(LedgerDevice, waiters),
                              offsetof(LedgerDevice, in_flight),
                              offsetof(LedgerDevice, window_limit),
                              offsetof(LedgerDevice, submitted),
                              offsetof(LedgerDevice, completed),
                              offsetof(LedgerDevice, gpu_time_ns),
                              offsetof(LedgerDevice, held_ns),
                              offsetof(LedgerDevice, passthrough),
                              offsetof(LedgerDevice, deadline_ns),
                              offsetof(Transition, kind),
                              offsetof(Transition, slot),
                              sizeof(LedgerSlice),
                              offsetof(LedgerSlice, us),
                              offsetof(Gate, memory_limit),
                              offsetof(Ledger, memory),
                              sizeof(LedgerMemory),
                              offsetof(LedgerMemory, refused)}) {
    hash = Mix(hash, value);
  }
  return hash;
}
}  // namespace detail

inline constexpr std::uint64_t kLayoutHash = detail::HashLayout();

}  // namespace xschedd::abi
