/* Arrays and schemas whose release counts, and spoils what nobody may read afterwards. */

#include "peers.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 3 };

struct array_node {
  struct peer_counts* counts;
  int node;
  size_t sizes[MAX_BUFFERS];
  void** event;
  struct ArrowArray* kept;
};

struct schema_node {
  struct peer_counts* counts;
  int node;
  char* metadata;
};

static void* allocate(size_t size) {
  void* memory = malloc(size == 0 ? 1 : size);
  if (memory == NULL) abort();
  return memory;
}

static void spoil_and_free(void* memory, size_t size) {
  if (memory != NULL) memset(memory, 0xDD, size);
  free(memory);
}

static void release_array(struct ArrowArray* array) {
  struct array_node* node = array->private_data;
  if (node->kept != NULL) {
    *node->kept = *array->children[0];
    array->children[0]->release = NULL;
  }
  for (int64_t i = 0; i < array->n_children; ++i) {
    struct ArrowArray* child = array->children[i];
    if (child->release != NULL) child->release(child);
    spoil_and_free(child, sizeof *child);
  }
  if (array->dictionary != NULL) {
    if (array->dictionary->release != NULL) array->dictionary->release(array->dictionary);
    spoil_and_free(array->dictionary, sizeof *array->dictionary);
  }
  for (int64_t i = 0; i < array->n_buffers; ++i) spoil_and_free((void*)array->buffers[i], node->sizes[i]);
  spoil_and_free(array->buffers, (size_t)array->n_buffers * sizeof *array->buffers);
  spoil_and_free(array->children, (size_t)array->n_children * sizeof *array->children);
  if (node->event != NULL) {
    spoil_and_free(node->event, sizeof *node->event);
    node->counts->events_destroyed++;
  }
  node->counts->released[node->node]++;
  spoil_and_free(node, sizeof *node);
  memset(array, 0xDD, sizeof *array);
  array->release = NULL;
}

static void make_array(struct ArrowArray* out, int node, int64_t length, int64_t null_count, int64_t n_buffers,
                       int64_t n_children, struct peer_counts* counts) {
  struct array_node* private_data = allocate(sizeof *private_data);
  memset(private_data, 0, sizeof *private_data);
  private_data->counts = counts;
  private_data->node = node;
  memset(out, 0, sizeof *out);
  out->length = length;
  out->null_count = null_count;
  out->n_buffers = n_buffers;
  out->n_children = n_children;
  out->buffers = allocate((size_t)n_buffers * sizeof *out->buffers);
  for (int64_t i = 0; i < n_buffers; ++i) out->buffers[i] = NULL;
  out->children = n_children == 0 ? NULL : allocate((size_t)n_children * sizeof *out->children);
  for (int64_t i = 0; i < n_children; ++i) out->children[i] = allocate(sizeof(struct ArrowArray));
  out->release = release_array;
  out->private_data = private_data;
}

static void set_buffer(struct ArrowArray* array, int index, const void* bytes, size_t size) {
  void* buffer = allocate(size);
  memcpy(buffer, bytes, size);
  array->buffers[index] = buffer;
  ((struct array_node*)array->private_data)->sizes[index] = size;
}

void peer_make_array(struct ArrowArray* out, struct peer_counts* counts) {
  static const uint8_t not_second = 0x0D, not_fourth = 0x07;
  static const int32_t ints[] = {1, 99, 3, 4}, offsets[] = {0, 1, 2};
  static const int8_t kinds[] = {1, 0, 1, 0};

  make_array(out, NODE_ROOT, 4, 0, 1, 2, counts);
  make_array(out->children[0], NODE_INTS, 4, 1, 2, 0, counts);
  set_buffer(out->children[0], 0, &not_second, sizeof not_second);
  set_buffer(out->children[0], 1, ints, sizeof ints);
  make_array(out->children[1], NODE_KINDS, 4, -1, 2, 0, counts);
  set_buffer(out->children[1], 0, &not_fourth, sizeof not_fourth);
  set_buffer(out->children[1], 1, kinds, sizeof kinds);
  out->children[1]->dictionary = allocate(sizeof(struct ArrowArray));
  make_array(out->children[1]->dictionary, NODE_DICTIONARY, 2, 0, 3, 0, counts);
  set_buffer(out->children[1]->dictionary, 1, offsets, sizeof offsets);
  set_buffer(out->children[1]->dictionary, 2, "ab", 2);
}

void peer_make_device_array(struct ArrowDeviceArray* out, ArrowDeviceType type, int64_t id,
                            struct peer_counts* counts) {
  void** event = allocate(sizeof *event);
  *event = PEER_HANDLE;
  memset(out, 0xAA, sizeof *out);
  peer_make_array(&out->array, counts);
  ((struct array_node*)out->array.private_data)->event = event;
  out->device_id = id;
  out->device_type = type;
  out->sync_event = event;
}

void peer_make_hoarder(struct ArrowArray* out, struct ArrowArray* kept, struct peer_counts* counts) {
  peer_make_array(out, counts);
  ((struct array_node*)out->private_data)->kept = kept;
}

static void release_schema(struct ArrowSchema* schema) {
  struct schema_node* node = schema->private_data;
  for (int64_t i = 0; i < schema->n_children; ++i) {
    struct ArrowSchema* child = schema->children[i];
    if (child->release != NULL) child->release(child);
    spoil_and_free(child, sizeof *child);
  }
  if (schema->dictionary != NULL) {
    if (schema->dictionary->release != NULL) schema->dictionary->release(schema->dictionary);
    spoil_and_free(schema->dictionary, sizeof *schema->dictionary);
  }
  spoil_and_free(schema->children, (size_t)schema->n_children * sizeof *schema->children);
  free(node->metadata);
  node->counts->released[node->node]++;
  spoil_and_free(node, sizeof *node);
  memset(schema, 0xDD, sizeof *schema);
  schema->release = NULL;
}

static void make_schema(struct ArrowSchema* out, int node, const char* format, const char* name, int64_t flags,
                        int64_t n_children, struct peer_counts* counts) {
  struct schema_node* private_data = allocate(sizeof *private_data);
  private_data->counts = counts;
  private_data->node = node;
  private_data->metadata = NULL;
  memset(out, 0, sizeof *out);
  out->format = format;
  out->name = name;
  out->flags = flags;
  out->n_children = n_children;
  out->children = n_children == 0 ? NULL : allocate((size_t)n_children * sizeof *out->children);
  for (int64_t i = 0; i < n_children; ++i) out->children[i] = allocate(sizeof(struct ArrowSchema));
  out->release = release_schema;
  out->private_data = private_data;
}

void peer_make_schema(struct ArrowSchema* out, struct peer_counts* counts) {
  static const int32_t one = 1, three = 3, two = 2;
  char *metadata, *end;

  make_schema(out, NODE_ROOT, "+s", "", 0, 2, counts);
  make_schema(out->children[0], NODE_INTS, "i", "number", ARROW_FLAG_NULLABLE, 0, counts);
  make_schema(out->children[1], NODE_KINDS, "c", "kind", ARROW_FLAG_NULLABLE | ARROW_FLAG_DICTIONARY_ORDERED, 0,
              counts);
  out->children[1]->dictionary = allocate(sizeof(struct ArrowSchema));
  make_schema(out->children[1]->dictionary, NODE_DICTIONARY, "u", NULL, 0, 0, counts);

  /* At an odd address, and with a value that is not UTF-8. */
  metadata = allocate(18);
  end = metadata + 1;
  memcpy(end, &one, 4), end += 4;
  memcpy(end, &three, 4), end += 4;
  memcpy(end, "key", 3), end += 3;
  memcpy(end, &two, 4), end += 4;
  memcpy(end, "\xFF\xFE", 2);
  ((struct schema_node*)out->private_data)->metadata = metadata;
  out->metadata = metadata + 1;
}
