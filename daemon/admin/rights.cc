#include "daemon/admin/rights.h"

#include <algorithm>
#include <iterator>

namespace xschedd {
namespace {

struct Entry {
  std::string_view rpc;
  Right right;
};

constexpr Entry kClientSocket[] = {
    {"GetVersion", Right::kAnybody},     {"GetPolicy", Right::kAnybody},  {"GetCeiling", Right::kAnybody},
    {"ListClients", Right::kOwnClients}, {"Set", Right::kOwnClients},     {"Hold", Right::kOwnClients},
    {"Release", Right::kOwnClients},     {"GetStats", Right::kReaders},   {"GetMetrics", Right::kReaders},
    {"GetConfig", Right::kReaders},      {"Explain", Right::kOwnClients}, {"WatchEvents", Right::kOwnClients},
};

}  // namespace

Right RightOnClientSocket(std::string_view rpc) {
  const auto* const found = std::find_if(std::begin(kClientSocket), std::end(kClientSocket),
                                         [rpc](const Entry& entry) { return entry.rpc == rpc; });
  return found == std::end(kClientSocket) ? Right::kRefused : found->right;
}

std::string RefusalText(std::string_view rpc) {
  return std::string(rpc) +
         " is for administrators, and client.sock serves only a user's own clients; use admin.sock, " +
         "as root or as a member of group xschedd";
}

}  // namespace xschedd
