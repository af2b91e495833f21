// HSA functions that libamdhip64 5.2, 6.4 or 7.2 imports and the software GPU does not have: images (an MI300 has none
// either), graphics interop, shareable handles of memory, file I/O. Each reports that once and fails. They are defined
// without parameters: the ABI allows ignoring a caller's arguments. Thread rule: any thread.
#include "tools/softgpu/hsa/not_implemented.h"

#define SOFTGPU_UNSUPPORTED(name)                                     \
  extern "C" __attribute__((visibility("default"))) unsigned name() { \
    return softgpu::not_implemented(#name);                           \
  }

SOFTGPU_UNSUPPORTED(hsa_amd_image_create)
SOFTGPU_UNSUPPORTED(hsa_ext_image_create)
SOFTGPU_UNSUPPORTED(hsa_ext_image_create_with_layout)
SOFTGPU_UNSUPPORTED(hsa_ext_image_data_get_info)
SOFTGPU_UNSUPPORTED(hsa_ext_image_destroy)
SOFTGPU_UNSUPPORTED(hsa_ext_image_export)
SOFTGPU_UNSUPPORTED(hsa_ext_image_import)
SOFTGPU_UNSUPPORTED(hsa_ext_sampler_create)
SOFTGPU_UNSUPPORTED(hsa_ext_sampler_create_v2)
SOFTGPU_UNSUPPORTED(hsa_ext_sampler_destroy)
SOFTGPU_UNSUPPORTED(hsa_amd_interop_map_buffer)
SOFTGPU_UNSUPPORTED(hsa_amd_interop_unmap_buffer)
SOFTGPU_UNSUPPORTED(hsa_amd_ipc_signal_create)
SOFTGPU_UNSUPPORTED(hsa_amd_ipc_signal_attach)
SOFTGPU_UNSUPPORTED(hsa_amd_vmem_export_shareable_handle)
SOFTGPU_UNSUPPORTED(hsa_amd_vmem_import_shareable_handle)
SOFTGPU_UNSUPPORTED(hsa_amd_portable_export_dmabuf)
SOFTGPU_UNSUPPORTED(hsa_amd_portable_close_dmabuf)
SOFTGPU_UNSUPPORTED(hsa_amd_ais_file_read)
SOFTGPU_UNSUPPORTED(hsa_amd_ais_file_write)
