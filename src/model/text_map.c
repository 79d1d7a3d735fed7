/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text_map.h"

json_t *text_map_to_json(struct text_map map)
{
	json_t *object = json_object();

	for (size_t i = 0; i < map.count; i++)
		json_object_set_new(object, map.pairs[i].name, json_string(map.pairs[i].value));
	return object;
}

json_t *text_list_to_json(struct text_list list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list.count; i++)
		json_array_append_new(array, json_string(list.texts[i]));
	return array;
}
