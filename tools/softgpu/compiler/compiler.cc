// HIP's compiler with a memory: the library that libamdhip64 loads as libamd_comgr on the software GPU. At the
// start of each process HIP compiles its own kernels for copies and fills, 0.25 s of the processor; here the first
// process of a build folder does so, and later ones read what it got. Everything is the installed compiler's, in
// libamd_comgr.so.X beside this (renamed.py); only amd_comgr_do_action looks into the folder `cache` beside this
// library first. What cannot be read or written there is compiled as without it. Thread rule: any thread; files appear
// whole, by rename.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if __has_include(<amd_comgr/amd_comgr.h>)
#include <amd_comgr/amd_comgr.h>
#else
#include <amd_comgr.h>
#endif

namespace {

struct Data {
  std::uint32_t kind = 0;
  std::string name, bytes;
};

constexpr std::uint32_t kLastKind = AMD_COMGR_DATA_KIND_LAST;

decltype(&amd_comgr_do_action) Installed() {
  static const auto function = [] {
    void* const library = ::dlopen("libamd_comgr.so.X", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<decltype(&amd_comgr_do_action)>(::dlsym(library, "amd_comgr_do_action"));
  }();
  return function;
}

// Beside this library. Empty: not known.
const std::string& Folder() {
  static const std::string folder = [] {
    Dl_info info;
    if (::dladdr(reinterpret_cast<void*>(&Installed), &info) == 0) return std::string();
    const std::string self = info.dli_fname;
    return self.substr(0, self.rfind('/') + 1) + "cache/";
  }();
  return folder;
}

// The text that `get(size, text)` gives, as the functions of this interface do: asked for its size first.
template <typename Get>
bool Ask(Get get, std::string& text) {
  std::size_t size = 0;
  if (get(&size, nullptr) != AMD_COMGR_STATUS_SUCCESS) return false;
  text.resize(size);
  return size == 0 || get(&size, text.data()) == AMD_COMGR_STATUS_SUCCESS;
}

bool Read(amd_comgr_data_set_t set, std::vector<Data>& all) {
  for (std::uint32_t kind = 1; kind <= kLastKind; ++kind) {
    const auto of_kind = static_cast<amd_comgr_data_kind_t>(kind);
    std::size_t count = 0;
    if (amd_comgr_action_data_count(set, of_kind, &count) != AMD_COMGR_STATUS_SUCCESS) continue;  // no such kind
    for (std::size_t i = 0; i < count; ++i) {
      amd_comgr_data_t data;
      if (amd_comgr_action_data_get_data(set, of_kind, i, &data) != AMD_COMGR_STATUS_SUCCESS) return false;
      Data one;
      one.kind = kind;
      const bool is_read =
          Ask([&](auto* size, char* text) { return amd_comgr_get_data_name(data, size, text); }, one.name) &&
          Ask([&](auto* size, char* text) { return amd_comgr_get_data(data, size, text); }, one.bytes);
      amd_comgr_release_data(data);
      if (!is_read) return false;
      all.push_back(std::move(one));
    }
  }
  return true;
}

bool Add(const Data& one, amd_comgr_data_set_t set) {
  amd_comgr_data_t data;
  if (amd_comgr_create_data(static_cast<amd_comgr_data_kind_t>(one.kind), &data) != AMD_COMGR_STATUS_SUCCESS)
    return false;
  // An empty log: it cannot be set, and HIP reads what is not set as a null text.
  const std::size_t size = std::max<std::size_t>(one.bytes.size(), 1);
  const bool is_added = amd_comgr_set_data(data, size, one.bytes.c_str()) == AMD_COMGR_STATUS_SUCCESS &&
                        amd_comgr_set_data_name(data, one.name.c_str()) == AMD_COMGR_STATUS_SUCCESS &&
                        amd_comgr_data_set_add(set, data) == AMD_COMGR_STATUS_SUCCESS;
  amd_comgr_release_data(data);
  return is_added;
}

void Put(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void Put(std::string& text, const std::string& bytes) {
  Put(text, bytes.size());
  text += bytes;
}

void Put(std::string& text, const Data& one) {
  Put(text, one.kind);
  Put(text, one.name);
  Put(text, one.bytes);
}

bool Take(std::string_view& text, std::uint64_t& number) {
  if (text.size() < sizeof number) return false;
  std::memcpy(&number, text.data(), sizeof number);
  text.remove_prefix(sizeof number);
  return true;
}

bool Take(std::string_view& text, std::string& bytes) {
  std::uint64_t size = 0;
  if (!Take(text, size) || text.size() < size) return false;
  bytes = text.substr(0, size);
  text.remove_prefix(size);
  return true;
}

// The file of an action's result: named by the hash of all that it depends on. Empty: that cannot be read.
std::string FileOf(amd_comgr_action_kind_t kind, amd_comgr_action_info_t info, const std::vector<Data>& input) {
  std::string all, text;
  amd_comgr_language_t language;
  std::size_t options = 0;
  if (!Ask([&](auto* size, char* out) { return amd_comgr_action_info_get_isa_name(info, size, out); }, text) ||
      amd_comgr_action_info_get_language(info, &language) != AMD_COMGR_STATUS_SUCCESS ||
      amd_comgr_action_info_get_option_list_count(info, &options) != AMD_COMGR_STATUS_SUCCESS)
    return {};
  Put(all, kind);
  Put(all, language);
  Put(all, text);
  for (std::size_t i = 0; i < options; ++i) {
    if (!Ask([&](auto* size, char* out) { return amd_comgr_action_info_get_option_list_item(info, i, size, out); },
             text))
      return {};
    Put(all, text);
  }
  for (const Data& one : input)
    if (one.kind != AMD_COMGR_DATA_KIND_LOG) Put(all, one);  // a log is of the action before
  return Folder() + std::to_string(std::hash<std::string>()(all));
}

// Empty: there is no such file, or it is not whole.
std::vector<Data> Load(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  std::vector<Data> all;
  for (std::string_view text = content; !text.empty();) {
    Data one;
    std::uint64_t kind = 0;
    if (!Take(text, kind) || !Take(text, one.name) || !Take(text, one.bytes)) return {};
    one.kind = static_cast<std::uint32_t>(kind);
    all.push_back(std::move(one));
  }
  return all;
}

void Save(const std::string& path, const std::vector<Data>& all) {
  std::string text;
  for (const Data& one : all)
    Put(text, one);
  ::mkdir(Folder().c_str(), 0755);
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) return;
  const bool is_written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::fchmod(fd, 0644);
  ::close(fd);
  if (!is_written || ::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

// The steps that take time, in every release.
bool IsSlow(amd_comgr_action_kind_t kind) {
  return kind == AMD_COMGR_ACTION_COMPILE_SOURCE_TO_BC ||
         kind == AMD_COMGR_ACTION_COMPILE_SOURCE_WITH_DEVICE_LIBS_TO_BC || kind == AMD_COMGR_ACTION_LINK_BC_TO_BC ||
         kind == AMD_COMGR_ACTION_CODEGEN_BC_TO_RELOCATABLE || kind == AMD_COMGR_ACTION_LINK_RELOCATABLE_TO_EXECUTABLE;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) amd_comgr_status_t amd_comgr_do_action(amd_comgr_action_kind_t kind,
                                                                                         amd_comgr_action_info_t info,
                                                                                         amd_comgr_data_set_t input,
                                                                                         amd_comgr_data_set_t result) {
  std::vector<Data> given, before, made;
  std::string path;
  if (IsSlow(kind) && !Folder().empty() && Read(input, given) && Read(result, before) && before.empty())
    path = FileOf(kind, info, given);
  if (path.empty()) return Installed()(kind, info, input, result);
  if (const std::vector<Data> known = Load(path); !known.empty()) {
    for (const Data& one : known)
      if (!Add(one, result)) return AMD_COMGR_STATUS_ERROR;
    return AMD_COMGR_STATUS_SUCCESS;
  }
  const amd_comgr_status_t status = Installed()(kind, info, input, result);
  if (status == AMD_COMGR_STATUS_SUCCESS && Read(result, made)) Save(path, made);
  return status;
}
