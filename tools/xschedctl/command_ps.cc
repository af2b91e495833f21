// `xschedctl ps`: which clients are on which device, with which priority and in which state.
#include <memory>
#include <optional>

#include "tools/xschedctl/commands.h"
#include "tools/xschedctl/device_memory.h"
#include "tools/xschedctl/pager.h"
#include "tools/xschedctl/render_json.h"

namespace xschedd::ctl {

Command AddPs(CommandSyntax& program, const GlobalOptions& global) {
  CommandSyntax& command = program.AddCommand("ps", "List clients: priority, state, held time, GPU time");
  auto selector = std::make_shared<SelectorOptions>();
  auto devices = std::make_shared<bool>(false);
  AddSelectorOptions(command, *selector, "every client, and programs on the GPU that are not scheduled");
  command.AddFlag("--devices", *devices, "list devices instead of clients");
  return {&command, [=, &global]() -> Outcome<ExitCode> {
            const Result<v1::Selector> chosen = ParseSelector(*selector, WhenEmpty::kMeansAll);
            if (!chosen) return UsageFailure(chosen.error());
            Outcome<AdminClient> client = AdminClient::Connect(global.runtime_dir);
            if (!client) return tl::unexpected<Failure>(client.error());
            v1::ListClientsRequest request;
            *request.mutable_selector() = *chosen;
            const auto answer = client->Call(request);
            if (!answer) return tl::unexpected<Failure>(answer.error());
            std::optional<UnscheduledProcesses> unscheduled;
            if (selector->all && !*devices) unscheduled = FindUnscheduled(*answer);
            // The table of devices does not show it.
            const DeviceMemory memory = *devices && !global.json ? DeviceMemory() : ReadDeviceMemory();
            if (global.json) {
              Json json = ToJson(*answer, &memory);
              json["unscheduled"] = unscheduled ? ToJson(*unscheduled, &memory) : Json();
              Page(Document("ps", json), global);
              return ExitCode::kOk;
            }
            Page(*devices ? RenderDevices(*answer, global.Style())
                          : RenderClients(*answer, global.Style(), unscheduled ? &*unscheduled : nullptr, &memory),
                 global);
            return ExitCode::kOk;
          }};
}

}  // namespace xschedd::ctl
