/* GLSL to SPIR-V with glslang's C interface, SPIR-V to a pipeline with the driver. */
#include "vulkan.h"

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
#include <stdio.h>

static int initialised;

/* Once per process, and never undone: other threads may compile, and the library stays loaded anyway. */
static void initialise(void) { initialised = glslang_initialize_process(); }

static void put_log(char *log, uint32_t bytes, const char *first, const char *second) {
    if (bytes) snprintf(log, bytes, "%s%s", first ? first : "", second ? second : "");
}

/* ---- SPIR-V ------------------------------------------------------------------------------------------------------ */

static const glslang_messages_t messages = GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT;

static glslang_program_t *link_shader(glslang_shader_t *shader, char *log, uint32_t log_bytes) {
    glslang_program_t *program = glslang_program_create();
    if (!program) return NULL;
    glslang_program_add_shader(program, shader);
    if (glslang_program_link(program, (int)messages)) {
        glslang_program_SPIRV_generate(program, GLSLANG_STAGE_COMPUTE);
        if (glslang_program_SPIRV_get_size(program)) return program;
        put_log(log, log_bytes, "no SPIR-V: ", glslang_program_SPIRV_get_messages(program));
    } else {
        put_log(log, log_bytes, glslang_program_get_info_log(program), glslang_program_get_info_debug_log(program));
    }
    glslang_program_delete(program);
    return NULL;
}

/* NULL: the log says why. */
static glslang_program_t *translate(const char *text, char *log, uint32_t log_bytes) {
    const glslang_input_t input = {.language = GLSLANG_SOURCE_GLSL,
                                   .stage = GLSLANG_STAGE_COMPUTE,
                                   .client = GLSLANG_CLIENT_VULKAN,
                                   .client_version = GLSLANG_TARGET_VULKAN_1_2,
                                   .target_language = GLSLANG_TARGET_SPV,
                                   .target_language_version = GLSLANG_TARGET_SPV_1_5,
                                   .code = text,
                                   .default_version = 460,
                                   .default_profile = GLSLANG_NO_PROFILE,
                                   .messages = messages,
                                   .resource = glslang_default_resource()};
    glslang_shader_t *shader = glslang_shader_create(&input);
    glslang_program_t *program = NULL;
    if (!shader) return put_log(log, log_bytes, "no host memory for a shader", NULL), NULL;
    if (glslang_shader_preprocess(shader, &input) && glslang_shader_parse(shader, &input))
        program = link_shader(shader, log, log_bytes);
    else put_log(log, log_bytes, glslang_shader_get_info_log(shader), glslang_shader_get_info_debug_log(shader));
    glslang_shader_delete(shader);
    return program;
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

static int32_t make_pipeline(vulkan_device *d, const uint32_t *words, size_t n, VkPipeline *out) {
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = n * sizeof *words,
                                           .pCode = words};
    VkShaderModule module;
    VkResult result = d->vk.CreateShaderModule(d->handle, &info, NULL, &module);
    if (result) return vulkan_device_failed(d, result, "vkCreateShaderModule");
    const VkComputePipelineCreateInfo pipeline = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                                  .stage = {.sType =
                                                                VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                            .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                            .module = module,
                                                            .pName = "main"},
                                                  .layout = d->layout};
    result = d->vk.CreateComputePipelines(d->handle, d->cache, 1, &pipeline, NULL, out);
    d->vk.DestroyShaderModule(d->handle, module, NULL);
    return result ? vulkan_device_failed(d, result, "vkCreateComputePipelines") : FNX_OK;
}

static int32_t check_limits(const vulkan_device *d, const fnx_codegen_source *s, char *log, uint32_t log_bytes) {
    const uint64_t threads = (uint64_t)s->threads[0] * s->threads[1] * s->threads[2];
    if (threads <= d->codegen.max_threads && s->shared_bytes <= d->codegen.max_shared) return FNX_OK;
    if (log_bytes)
        snprintf(log, log_bytes, "%llu threads and %u bytes of shared memory; the limits are %u and %u",
                 (unsigned long long)threads, s->shared_bytes, d->codegen.max_threads, d->codegen.max_shared);
    return vulkan_error(d->host, FNX_E_UNSUPPORTED, "vulkan: device %u: a kernel beyond its limits", d->number);
}

int32_t vulkan_compile(void *user, const fnx_codegen_source *source, void **out_program, char *log,
                       uint32_t log_bytes) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    vulkan_device *d = user;
    if (log_bytes) *log = 0;
    int32_t code = vulkan_device_check(d);
    if (!code) code = check_limits(d, source, log, log_bytes);
    if (code) return code;
    pthread_once(&once, initialise);
    if (!initialised) return vulkan_error(d->host, FNX_E_INTERNAL, "vulkan: glslang could not initialise");
    glslang_program_t *spirv = translate(source->text, log, log_bytes);
    if (!spirv)
        return vulkan_error(d->host, FNX_E_INTERNAL, "vulkan: glslang refused a kernel: %.300s", log_bytes ? log : "");
    vulkan_program *p = vulkan_alloc(d->host, sizeof *p);
    const uint32_t *words = glslang_program_SPIRV_get_ptr(spirv);
    if (!p) code = vulkan_error(d->host, FNX_E_NO_MEMORY, "vulkan: no host memory for a kernel");
    else code = make_pipeline(d, words, glslang_program_SPIRV_get_size(spirv), &p->pipeline);
    glslang_program_delete(spirv);
    if (!code) {
        *out_program = p;
        return FNX_OK;
    }
    put_log(log, log_bytes, "the driver refused the kernel", NULL);
    if (p) d->host->free(p);
    return code;
}

void vulkan_release(void *user, void *program) {
    vulkan_device *d = user;
    vulkan_program *p = program;
    if (!p) return;
    if (!atomic_load(&d->hung)) d->vk.DestroyPipeline(d->handle, p->pipeline, NULL);
    d->host->free(p);
}
