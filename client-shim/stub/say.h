// The stub's messages to the user: one line on standard error, "xschedd: ...", in one write.
// Silent with XSCHEDD_LOG=quiet. Thread rule: any thread; keeps errno.
#pragma once

namespace xschedd::shim {

// The parts are joined; a null part ends the line. At most about 500 characters.
void Say(const char* a, const char* b = nullptr, const char* c = nullptr, const char* d = nullptr,
         const char* e = nullptr);

}  // namespace xschedd::shim
