/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the scripts of launches into the program as they are. */
	.section .rodata
	.global pyproject_needs_py
pyproject_needs_py:
	.incbin "stage/pyproject_needs.py"
	.byte 0
	.global typescript_check_js
typescript_check_js:
	.incbin "stage/typescript_check.js"
	.byte 0
	.section .note.GNU-stack, "", %progbits
