// The texts on the screen of `xschedctl top`: the table of clients, the line of a device, the page of help. TopView
// arranges them. Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/xschedctl/top/model.h"

namespace xschedd::ctl {

// The header and one line for each row, for a screen of this width. Marks the column by which the rows are sorted.
std::vector<std::string> TableLines(const std::vector<TopRow>& rows, TopSort sort, bool reverse, std::size_t width);

std::string DeviceText(const TopDevice& device);

// "pid 4711 (train)"
std::string NameInQuestion(const TopRow& row);

std::span<const std::string_view> TopHelp();

}  // namespace xschedd::ctl
