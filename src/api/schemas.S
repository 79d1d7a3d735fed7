/* SPDX-License-Identifier: Apache-2.0 */
/* Builds schemas.json into the program as it is. */
	.section .rodata
	.global schemas_json
	.global schemas_json_end
schemas_json:
	.incbin "schemas.json"
schemas_json_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
