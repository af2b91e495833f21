// Stands in for the libxschedd-client.so of another release, which reports another interface version to this release's
// stub. Thread rule: none.
#include "client-shim/core/interface.h"

using namespace xschedd::shim;

extern "C" __attribute__((visibility("default")))
const LibraryAbout xschedd_client_about = {kInterfaceVersion + 1, "9.9.9"};

extern "C" __attribute__((visibility("default"))) const ClientTable* xschedd_client_start(const StubTable* stub) {
  return stub->version == kInterfaceVersion + 1 ? reinterpret_cast<const ClientTable*>(stub) : nullptr;
}
