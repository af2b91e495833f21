// A program without HIP: it loads libraries and lets them launch, like a plug-in host.
//
//   load LAUNCHES MICROS STEP...
//     STEP  open:LIBRARY       dlopen(RTLD_NOW | RTLD_LOCAL)
//           global:LIBRARY     with RTLD_GLOBAL
//           deep:LIBRARY       with RTLD_LOCAL | RTLD_DEEPBIND
//           close              dlclose of the one opened last
//           pause              prints "paused" and waits for a line
//           HOW                route_work(LAUNCHES, MICROS, HOW) of the library opened last (route.hip)
//           HOW@N              the same of the library that was opened as number N, from 0
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void* Open(const std::string& path, int flags) {
  void* library = dlopen(path.c_str(), RTLD_NOW | flags);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  return library;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto launches = static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10));
  const std::uint64_t micros = std::strtoull(argv[2], nullptr, 10);
  std::vector<void*> opened;
  for (int i = 3; i < argc; ++i) {
    const std::string step = argv[i];
    const std::string verb = step.substr(0, step.find(':'));
    const std::string path = step.substr(step.find(':') + 1);
    if (verb == "open" || verb == "global" || verb == "deep") {
      opened.push_back(Open(path, verb == "global" ? RTLD_GLOBAL : RTLD_LOCAL | (verb == "deep" ? RTLD_DEEPBIND : 0)));
      continue;
    }
    if (verb == "close") {
      dlclose(opened.back());
      opened.pop_back();
      continue;
    }
    if (verb == "pause") {
      std::puts("paused");
      std::fflush(stdout);
      for (int c = std::getchar(); c != '\n' && c != EOF;)
        c = std::getchar();
      continue;
    }
    const std::size_t at = step.find('@');
    void* library = at == std::string::npos ? opened.back() : opened.at(std::stoul(step.substr(at + 1)));
    using Work = int (*)(unsigned, std::uint64_t, const char*);
    const auto work = reinterpret_cast<Work>(dlsym(library, "route_work"));
    if (work == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    if (const int result = work(launches, micros, step.substr(0, at).c_str()); result != 0) return result;
  }
  return 0;
}
