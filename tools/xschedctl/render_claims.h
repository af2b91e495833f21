// Claims as text and as JSON. Thread rule: pure functions.
#pragma once

#include <string>

#include "admin.pb.h"
#include "tools/xschedctl/render_json.h"
#include "tools/xschedctl/table.h"

namespace xschedd::ctl {

std::string RenderClaims(const v1::ListClaimsResponse& answer, const TextStyle& style);
std::string RenderPut(const v1::PutClaimResponse& answer, bool dry_run);
std::string RenderRemoved(const v1::DeleteClaimResponse& answer, bool dry_run);

Json ToJson(const v1::Claim& claim);
Json ToJson(const v1::ListClaimsResponse& answer);
Json ToJson(const v1::PutClaimResponse& answer, bool dry_run);
Json ToJson(const v1::DeleteClaimResponse& answer, bool dry_run);

}  // namespace xschedd::ctl
