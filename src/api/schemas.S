/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the texts of the OpenAPI document into the program as they are. */
	.section .rodata
	.global schemas_json
	.global schemas_json_end
	.global operations_json
	.global operations_json_end
	.global examples_json
	.global examples_json_end
	.global streams_json
	.global streams_json_end
	.global tags_json
	.global tags_json_end
schemas_json:
	.incbin "schemas.json"
schemas_json_end:
	.byte 0
operations_json:
	.incbin "operations.json"
operations_json_end:
	.byte 0
examples_json:
	.incbin "examples.json"
examples_json_end:
	.byte 0
streams_json:
	.incbin "streams.json"
streams_json_end:
	.byte 0
tags_json:
	.incbin "tags.json"
tags_json_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
