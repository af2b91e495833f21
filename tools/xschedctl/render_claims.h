// Claims as text and as JSON. Thread rule: pure functions.
#pragma once

#include <string>

#include "admin.pb.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

std::string RenderClaims(const v1::ListClaimsResponse& answer, const TextStyle& style);
// `folder`: the one that contains the folders of claims' sockets.
std::string RenderPut(const v1::PutClaimResponse& answer, bool dry_run, const std::string& folder);
std::string RenderReport(const v1::ReportClaimsResponse& answer, const TextStyle& style);
std::string RenderRemoved(const v1::DeleteClaimResponse& answer, bool dry_run);

Json ToJson(const v1::Claim& claim, const std::string& folder);
Json ToJson(const v1::ListClaimsResponse& answer, const std::string& folder);
Json ToJson(const v1::PutClaimResponse& answer, bool dry_run, const std::string& folder);
Json ToJson(const v1::ReportClaimsResponse& answer);
Json ToJson(const v1::DeleteClaimResponse& answer, bool dry_run, const std::string& folder);

}  // namespace xschedd::ctl
