#include "tools/xschedctl/bundle/tar.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

namespace xschedd::ctl {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kRecord = 20 * kBlock;  // an archive is whole records
constexpr std::size_t kChecksumAt = 148;

std::string Header(const TarEntry& entry, std::uint64_t unix_s) {
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, std::string_view(entry.name).substr(0, 100));
  put(100, "0000600");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", entry.text.size()));
  put(136, fmt::format("{:011o}", unix_s));
  put(kChecksumAt, "        ");  // counts as blanks in its own sum
  put(156, "0");
  put(257, std::string_view("ustar\00000", 8));
  const unsigned sum = std::accumulate(header.begin(), header.end(), 0u,
                                       [](unsigned so_far, char c) { return so_far + static_cast<unsigned char>(c); });
  put(kChecksumAt, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

void FillUp(std::string* archive, std::size_t unit) {
  archive->resize((archive->size() + unit - 1) / unit * unit);
}

}  // namespace

std::string Tar(std::span<const TarEntry> entries, std::uint64_t unix_s) {
  std::string archive;
  for (const TarEntry& entry : entries) {
    archive += Header(entry, unix_s) + entry.text;
    FillUp(&archive, kBlock);
  }
  archive.append(2 * kBlock, '\0');  // the end
  FillUp(&archive, kRecord);
  return archive;
}

}  // namespace xschedd::ctl
