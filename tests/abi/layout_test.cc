// Compares the published, frozen layouts with those that the present code serves.
#include "common/abi.h"
#include "common/preamble.h"
#include "common/versions.h"
#include "tests/abi/v1/abi.h"
#include "tests/abi/v1/preamble.h"
#include "tests/abi/v2/abi.h"
#include "tests/abi/v3/abi.h"
#include "tests/abi/v4/abi.h"
#include "tests/catch.h"

namespace now = xschedd::abi;
namespace v1 = xschedd_v1::abi;
namespace v2 = xschedd_v2::abi;
namespace v3 = xschedd_v3::abi;
namespace v4 = xschedd_v4::abi;

// A version grows only in padding or at the end: each frozen field is at the same place today.
#define SAME_PLACE(type, field)                                   \
  CHECK(offsetof(now::type, field) == offsetof(v1::type, field)); \
  CHECK(sizeof(now::type::field) == sizeof(v1::type::field))
#define SAME_VALUE(name) CHECK(now::name == v1::name)

TEST_CASE("each version that is spoken was published, with its hash and size") {
  for (const now::Layout& layout : now::Spoken()) {
    INFO("version " << layout.version);
    switch (layout.version) {
      case 1:
        CHECK(layout == now::Layout{v1::kVersion, v1::kLayoutHash, sizeof(v1::Board), sizeof(v1::Ledger)});
        break;
      case 2:
        CHECK(layout == now::Layout{v2::kVersion, v2::kLayoutHash, sizeof(v2::Board), sizeof(v2::Ledger)});
        break;
      case 3:
        CHECK(layout == now::Layout{v3::kVersion, v3::kLayoutHash, sizeof(v3::Board), sizeof(v3::Ledger)});
        break;
      case 4:
        CHECK(layout == now::Layout{v4::kVersion, v4::kLayoutHash, sizeof(v4::Board), sizeof(v4::Ledger)});
        break;
      default:
        FAIL("no frozen copy: publish it, docs/explanation/shared-memory.md");
    }
    CHECK(now::FindSpoken(layout.version, layout.layout_hash) == &layout);
    CHECK(now::FindSpoken(layout.version, layout.layout_hash + 1) == nullptr);
  }
  CHECK(now::Newest().version == now::kVersion);
  CHECK(now::Newest().layout_hash == now::kLayoutHash);
  CHECK(now::FindSpoken(now::kVersion + 1, now::kLayoutHash) == nullptr);
}

TEST_CASE("version 1 was published with this hash") {
  // A number, so that an edit of the frozen copy also fails.
  CHECK(v1::kVersion == 1);
  CHECK(v1::kLayoutHash == 0x53e8e4e0f4ccc5e7u);
}

TEST_CASE("version 2 was published with this hash, and only grew") {
  CHECK(v2::kVersion == 2);
  CHECK(v2::kLayoutHash == 0x6d9a5c3f1658fb04u);
  CHECK(sizeof(now::LedgerControl) == sizeof(v2::LedgerControl));
  CHECK(offsetof(now::LedgerControl, renewals) == offsetof(v2::LedgerControl, renewals));
  CHECK(now::kRenewalsSince == v2::kRenewalsSince);
  CHECK(now::kRenewNs == v2::kRenewNs);
}

TEST_CASE("version 3 was published with this hash, and only grew") {
  CHECK(v3::kVersion == 3);
  CHECK(v3::kLayoutHash == 0x3d3ba14301bb2287u);
  CHECK(offsetof(now::Gate, slice_us) == offsetof(v3::Gate, slice_us));
  CHECK(offsetof(now::Ledger, slices) == offsetof(v3::Ledger, slices));
  CHECK(sizeof(now::LedgerSlice) == sizeof(v3::LedgerSlice));
  CHECK(offsetof(now::LedgerSlice, state) == offsetof(v3::LedgerSlice, state));
  CHECK(offsetof(now::LedgerSlice, us) == offsetof(v3::LedgerSlice, us));
  // The memory of an older version ends where this begins.
  CHECK(offsetof(now::Ledger, slices) >= sizeof(v2::Ledger));
  CHECK(offsetof(now::Gate, slice_us) + sizeof(now::Word) <= sizeof(v2::Gate));
  CHECK(now::kSlicesSince == v3::kSlicesSince);
  const auto same = [](now::SliceState a, v3::SliceState b) {
    return static_cast<std::uint32_t>(a) == static_cast<std::uint32_t>(b);
  };
  CHECK(same(now::SliceState::kNotAsked, v3::SliceState::kNotAsked));
  CHECK(same(now::SliceState::kInForce, v3::SliceState::kInForce));
  CHECK(same(now::SliceState::kNotHere, v3::SliceState::kNotHere));
  CHECK(same(now::SliceState::kRefused, v3::SliceState::kRefused));
}

TEST_CASE("version 4 was published with this hash, and only grew") {
  CHECK(v4::kVersion == 4);
  CHECK(v4::kLayoutHash == 0xd84f6f297366b1aeu);
  CHECK(offsetof(now::Gate, memory_limit) == 16);
  CHECK(offsetof(now::Gate, memory_limit) == offsetof(v4::Gate, memory_limit));
  CHECK(offsetof(now::Ledger, memory) == offsetof(v4::Ledger, memory));
  CHECK(sizeof(now::LedgerMemory) == sizeof(v4::LedgerMemory));
  CHECK(offsetof(now::LedgerMemory, bytes) == offsetof(v4::LedgerMemory, bytes));
  CHECK(offsetof(now::LedgerMemory, refused) == offsetof(v4::LedgerMemory, refused));
  // The memory of an older version ends where this begins.
  CHECK(offsetof(now::Ledger, memory) >= sizeof(v3::Ledger));
  CHECK(offsetof(now::Gate, memory_limit) >= offsetof(v3::Gate, slice_us) + sizeof(now::Word));
  CHECK(now::kMemorySince == v4::kMemorySince);
}

TEST_CASE("version 1: every field is where it was") {
  CHECK(sizeof(now::Board) >= sizeof(v1::Board));
  CHECK(sizeof(now::Ledger) >= sizeof(v1::Ledger));
  CHECK(sizeof(now::Gate) == sizeof(v1::Gate));
  CHECK(sizeof(now::LedgerDevice) == sizeof(v1::LedgerDevice));
  CHECK(sizeof(now::Transition) == sizeof(v1::Transition));
  SAME_PLACE(Board, header);
  SAME_PLACE(Board, summary);
  SAME_PLACE(Board, control);
  SAME_PLACE(Board, gates);
  SAME_PLACE(BoardHeader, magic);
  SAME_PLACE(BoardHeader, version);
  SAME_PLACE(BoardHeader, layout_hash);
  SAME_PLACE(BoardHeader, device_slots);
  SAME_PLACE(BoardSummary, flags);
  SAME_PLACE(BoardControl, lease_until_ns);
  SAME_PLACE(BoardControl, ring_tail);
  SAME_PLACE(BoardControl, daemon_sleeping);
  SAME_PLACE(Gate, word);
  SAME_PLACE(Gate, window_us);
  SAME_PLACE(Gate, window_floor);
  SAME_PLACE(Ledger, header);
  SAME_PLACE(Ledger, control);
  SAME_PLACE(Ledger, devices);
  SAME_PLACE(Ledger, ring);
  SAME_PLACE(LedgerHeader, magic);
  SAME_PLACE(LedgerHeader, version);
  SAME_PLACE(LedgerHeader, layout_hash);
  SAME_PLACE(LedgerControl, ring_head);
  SAME_PLACE(LedgerControl, lost);
  SAME_PLACE(LedgerDevice, busy);
  SAME_PLACE(LedgerDevice, waiters);
  SAME_PLACE(LedgerDevice, in_flight);
  SAME_PLACE(LedgerDevice, window_limit);
  SAME_PLACE(LedgerDevice, submitted);
  SAME_PLACE(LedgerDevice, completed);
  SAME_PLACE(LedgerDevice, gpu_time_ns);
  SAME_PLACE(LedgerDevice, held_ns);
  SAME_PLACE(LedgerDevice, passthrough);
  SAME_PLACE(LedgerDevice, deadline_ns);
  SAME_PLACE(Transition, time_ns);
  SAME_PLACE(Transition, kind);
  SAME_PLACE(Transition, slot);
}

TEST_CASE("version 1: every value means what it meant") {
  SAME_VALUE(kBoardMagic);
  SAME_VALUE(kLedgerMagic);
  SAME_VALUE(kMaxDevices);
  SAME_VALUE(kRingSize);
  SAME_VALUE(kLine);
  SAME_VALUE(kHeld);
  SAME_VALUE(kTracked);
  SAME_VALUE(kFlagMask);
  SAME_VALUE(kGenerationShift);
  CHECK(static_cast<std::uint32_t>(now::TransitionKind::kBusy) ==
        static_cast<std::uint32_t>(v1::TransitionKind::kBusy));
  CHECK(static_cast<std::uint32_t>(now::TransitionKind::kIdle) ==
        static_cast<std::uint32_t>(v1::TransitionKind::kIdle));
}

TEST_CASE("the preamble never changes") {
  using Now = xschedd::PreambleStatus;
  using Then = xschedd_v1::PreambleStatus;
  const auto same = [](Now a, Then b) { return static_cast<std::uint32_t>(a) == static_cast<std::uint32_t>(b); };
  CHECK(same(Now::kOk, Then::kOk));
  CHECK(same(Now::kVersionMismatch, Then::kVersionMismatch));
  CHECK(same(Now::kQuota, Then::kQuota));
  CHECK(same(Now::kDraining, Then::kDraining));
  CHECK(std::string(xschedd::kHelloMagic, 4) == std::string(xschedd_v1::kHelloMagic, 4));
  CHECK(std::string(xschedd::kWelcomeMagic, 4) == std::string(xschedd_v1::kWelcomeMagic, 4));
  CHECK(xschedd::kPreambleDescriptors == xschedd_v1::kPreambleDescriptors);
#define SAME_BYTES(type, field)                                               \
  CHECK(offsetof(xschedd::type, field) == offsetof(xschedd_v1::type, field)); \
  CHECK(sizeof(xschedd::type::field) == sizeof(xschedd_v1::type::field))
  CHECK(sizeof(xschedd::PreambleHello) == sizeof(xschedd_v1::PreambleHello));
  CHECK(sizeof(xschedd::PreambleWelcome) == sizeof(xschedd_v1::PreambleWelcome));
  SAME_BYTES(PreambleHello, magic);
  SAME_BYTES(PreambleHello, abi_version);
  SAME_BYTES(PreambleHello, layout_hash);
  SAME_BYTES(PreambleWelcome, magic);
  SAME_BYTES(PreambleWelcome, status);
  SAME_BYTES(PreambleWelcome, abi_version);
  SAME_BYTES(PreambleWelcome, layout_hash);
  SAME_BYTES(PreambleWelcome, token);
}
