// The calls that client.sock serves, and users that a user namespace does not map.
#include "daemon/admin/rights.h"

#include "admin.pb.h"
#include "daemon/registry/process.h"
#include "tests/catch.h"

using namespace xschedd;

TEST_CASE("client.sock refuses every call that is not meant for users, also an unknown one") {
  for (const char* rpc : {"SetPolicy", "Reload", "Drain", "Disable", "Enable", "NewInALaterVersion", "", "set", "Set2"})
    CHECK(RightOnClientSocket(rpc) == Right::kRefused);
  CHECK(RightOnClientSocket("GetVersion") == Right::kAnybody);
  CHECK(RightOnClientSocket("Set") == Right::kOwnClients);
  CHECK(RightOnClientSocket("GetStats") == Right::kReaders);
  CHECK(RefusalText("Drain").find("; use admin.sock, as root or as a member of group xschedd") != std::string::npos);
}

TEST_CASE("where not all users are mapped, one uid stands for several") {
  CHECK(!NobodyOf("         0          0 4294967295\n", "65534\n"));
  CHECK(!NobodyOf("0 0 2147483648\n2147483648 2147483648 2147483647\n", "65534\n"));
  CHECK(NobodyOf("         0       1000          1\n", "65534\n") == 65534);
  CHECK(NobodyOf("0 100000 65536\n", "4242\n") == 4242);
  CHECK(NobodyOf("", "") == 65534);
}
