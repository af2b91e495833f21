// DeviceTracker's use of stream accounts: when an account gets a grant, and how its counts are folded into the
// device's.
#include <algorithm>
#include <bit>

#include "client-shim/core/device_tracker.h"
#include "common/clock.h"

namespace xschedd::shim {
namespace {

// How much of the window an account gets: a quarter of what is free below three quarters of the window. Where there is
// less room, launches go by the device, which knows all that is in flight.
constexpr std::uint64_t RoomToPromiseNs(const Window& window, std::uint64_t counted_ns) {
  const std::uint64_t max_ns = std::uint64_t{window.us} * 1000 / 4 * 3;
  return counted_ns < max_ns ? (max_ns - counted_ns) / 4 : 0;
}

}  // namespace

void DeviceTracker::GrantAccount(TrackedStream* stream, LaunchKey key, LaunchKey function, std::uint64_t weight_ns) {
  const StreamKey& its = stream->activity.stream;
  const std::uintptr_t owner = StreamAccounts::OwnerOf(its);
  const bool is_alone = stream->admitted == 0 && stream->pins == 0 && !stream->work.IsIdle();
  if (owner == StreamAccounts::kNobody || !is_alone || !streams_.MayMarkElsewhere(its)) return;
  if (!accounts_.AreOpen() || admission_.IsHostAhead()) return;
  const Window& window = admission_.LastWindow();
  const std::uint64_t room_ns = window.us == 0
                                    ? StreamAccount::kNoLimit
                                    : RoomToPromiseNs(window, admission_.InFlightNs() + admission_.PromisedNs());
  // A grant for a single launch is not worth it.
  if (room_ns < 2 * weight_ns || IsMarkerDue(window.us, stream->work.UnmarkedNs() + 2 * weight_ns, weight_ns, 0))
    return;
  const std::size_t place = accounts_.Make(owner);
  if (place == StreamAccounts::kAccounts) return;
  if (window.us != 0) admission_.Promise(room_ns);
  const std::uint64_t by_age_ns = stream->marked_at_ns + kMarkerAgeNs;
  const std::uint64_t until_ns = reports_.WantsCount() ? std::min(by_age_ns, last_submit_ns_ + kCountNs) : by_age_ns;
  accounts_.Grant(place,
                  {owner, stream, epoch_, streams_.Forgets(), window, room_ns, stream->work.UnmarkedNs(), until_ns},
                  times_.Costs(), key, function);
}

void DeviceTracker::FoldIfGranted(const StreamKey& key, bool takes_back) {
  const std::uintptr_t owner = StreamAccounts::OwnerOf(key);
  if (owner == StreamAccounts::kNobody) return;
  const std::size_t place = accounts_.Of(owner);
  if (place != StreamAccounts::kAccounts && accounts_.IsGranted(place)) FoldPlace(place, takes_back);
}

void DeviceTracker::FoldEach(bool takes_back) {
  for (std::uint64_t rest = accounts_.Granted(); rest != 0; rest &= rest - 1)
    FoldPlace(static_cast<std::size_t>(std::countr_zero(rest)), takes_back);
}

void DeviceTracker::FoldPlace(std::size_t place, bool takes_back) {
  std::uint32_t launched = 0;
  const auto add = [&](TrackedStream* stream, const StreamAccount::Kind& kind) {
    stream->work.Launched(kind.key, kind.weight_ns, kind.launched);
    stream->activity.launches += kind.launched;
    times_.Costs().Launched(kind.key, kind.function, times_.Average().AverageNs(), kind.place, kind.launched);
    launched += kind.launched;
  };
  const StreamAccount::Folded folded = accounts_.At(place).Fold(takes_back, add);
  if (takes_back) accounts_.NoteTakenBack(place);
  admission_.EndPromise(folded.promised_ns);
  admission_.Fold(folded.stream, InFlight{folded.begun, folded.begun_ns});
  Admission::Leave(folded.stream, launched);
  entered_ += folded.begun;
  entered_ -= launched;
  last_submit_ns_ = std::max(last_submit_ns_, folded.last_ns);
  folded.stream->submitted_ns = std::max(folded.stream->submitted_ns, folded.last_ns);
  if (launched > 0) reports_.AddLaunched(launched);
}

}  // namespace xschedd::shim
