// dlsym and dlvsym, for programs that load a GPU runtime themselves and look up its functions, as Triton and cudart do.
//
// For every name that is not one of our entry points, the hook jumps to the C library's function. That must see the
// caller's return address, which tells it the object that RTLD_NEXT and RTLD_DEFAULT are relative to. For an entry
// point:
//   ordinary handle   look it up; if the result is in the runtime, return our wrapper, else the result
//   RTLD_DEFAULT      jump: finds our wrapper, and so does the program's own handle (dlopen of null). With a version
//   the
//                     C library does not find ours, which has none: return our wrapper if the function is in the
//                     caller's scope
//   RTLD_NEXT         jump if the caller defines the name itself, because it wants the definition behind its own.
//   Others
//                     get our wrapper if the function is in their scope
// A program must not find a function that only the shim defines. If no loaded runtime has it, in the requested version,
// the answer is null: the hook has the C library look up a name that cannot exist, which also sets dlerror.
// x86-64 only. Thread rule: any thread.
#include <dlfcn.h>
#include <string.h>

#include "client-shim/stub/client.h"
#include "client-shim/stub/front_end.h"
#include "client-shim/stub/other_libraries.h"

namespace xschedd::shim {

// Returned in rax and rdx.
struct Answer {
  void* jump;   // where to go on; null: `value` is the result
  void* value;  // with `jump`: the name to look up instead of the caller's, or null
};

namespace {

char g_no_such_name[] = "(a GPU runtime's function, and that runtime is not loaded)";

const Exposed* ExposedOf(const char* name) {
  for (const FrontEnd* front_end : kFrontEnds) {
    if (front_end->exposed.may_be_ours(name)) return &front_end->exposed;
  }
  return kOtherLibraries.may_be_ours(name) ? &kOtherLibraries : nullptr;
}

bool IsOwn(const void* address) {
  return FindObjectByAddress(reinterpret_cast<const void*>(&g_no_such_name)).Covers(address);
}

// Our wrapper of `name`, if the runtime's function is in the caller's scope, as far as that can be determined here: the
// program's scope, and the dependencies of the caller's object. Null: it is not; the C library's answer stands.
template <typename LookUp>
void* WrapperInScope(const Exposed& exposed, const char* name, const char* path, LookUp look_up) {
  void* found = look_up(RTLD_NEXT);  // behind us
  if (found == nullptr && *path != '\0') {
    const DlopenFunction open = RealDlopen();
    if (void* object = open != nullptr ? open(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr) {
      found = look_up(object);
      CloseObject(object);
    }
  }
  return found != nullptr && exposed.is_runtime_code(found) ? exposed.wrapper_of(name) : nullptr;
}

template <typename LookUp>
Answer Decide(void* real, void* handle, const char* name, bool has_version, const void* caller, LookUp look_up) {
  if (name == nullptr || real == nullptr) return {real, nullptr};
  const Exposed* exposed = ExposedOf(name);
  if (exposed == nullptr || !exposed->is_entry(name)) return {real, nullptr};
  const bool is_unscheduled = IsInert() || IsDisabled();
  if (handle == RTLD_DEFAULT && !has_version) return {real, exposed->exports(name) ? nullptr : g_no_such_name};
  if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
    char path[4096] = "";
    const ElfObject object = FindObjectByAddress(caller, path, sizeof path);
    const bool is_interposer = handle == RTLD_NEXT && FindSymbol(object, name) != nullptr;
    void* wrapper = is_unscheduled || is_interposer ? nullptr : WrapperInScope(*exposed, name, path, look_up);
    if (wrapper == nullptr) return {real, nullptr};
    return {nullptr, wrapper};
  }
  void* found = look_up(handle);
  // With the program's own handle, ours is found first. Is there one behind it?
  if (found != nullptr && IsOwn(found) && look_up(RTLD_NEXT) == nullptr) return {real, g_no_such_name};
  void* wrapper = is_unscheduled ? nullptr : exposed->wrapper_of(name);
  return {nullptr, wrapper != nullptr && exposed->is_runtime_code(found) ? wrapper : found};
}

}  // namespace

extern "C" {

__attribute__((used)) Answer xschedd_decide_dlsym(void* handle, const char* name, const char*, const void* caller) {
  const DlsymFunction real = RealDlsym();
  return Decide(reinterpret_cast<void*>(real), handle, name, false, caller,
                [&](void* where) { return real(where, name); });
}

__attribute__((used)) Answer xschedd_decide_dlvsym(void* handle, const char* name, const char* version,
                                                   const void* caller) {
  using Function = void* (*)(void*, const char*, const char*);
  const auto real = reinterpret_cast<Function>(RealDlvsym());
  return Decide(reinterpret_cast<void*>(real), handle, name, true, caller,
                [&](void* where) { return real(where, name, version); });
}

}  // extern "C"

// Saves the three arguments and calls `decide`, with the caller's return address as a fourth. Then returns the value,
// or jumps with the stack as it was at entry.
#define XS_LOOK_UP_HOOK(name, decide) \
  asm(".pushsection .text\n"          \
      ".globl " #name                 \
      "\n"                            \
      ".type " #name                  \
      ", @function\n"                 \
      ".p2align 4\n" #name            \
      ":\n"                           \
      "  .cfi_startproc\n"            \
      "  endbr64\n"                   \
      "  pushq %rdi\n"                \
      "  .cfi_adjust_cfa_offset 8\n"  \
      "  pushq %rsi\n"                \
      "  .cfi_adjust_cfa_offset 8\n"  \
      "  pushq %rdx\n"                \
      "  .cfi_adjust_cfa_offset 8\n"  \
      "  movq 24(%rsp), %rcx\n"       \
      "  call " #decide               \
      "\n"                            \
      "  movq %rdx, %rcx\n"           \
      "  popq %rdx\n"                 \
      "  .cfi_adjust_cfa_offset -8\n" \
      "  popq %rsi\n"                 \
      "  .cfi_adjust_cfa_offset -8\n" \
      "  popq %rdi\n"                 \
      "  .cfi_adjust_cfa_offset -8\n" \
      "  testq %rax, %rax\n"          \
      "  je 1f\n"                     \
      "  testq %rcx, %rcx\n"          \
      "  cmovneq %rcx, %rsi\n"        \
      "  jmpq *%rax\n"                \
      "1:\n"                          \
      "  movq %rcx, %rax\n"           \
      "  ret\n"                       \
      "  .cfi_endproc\n"              \
      ".size " #name ", . - " #name   \
      "\n"                            \
      ".popsection\n")

XS_LOOK_UP_HOOK(dlsym, xschedd_decide_dlsym);
XS_LOOK_UP_HOOK(dlvsym, xschedd_decide_dlvsym);

}  // namespace xschedd::shim
