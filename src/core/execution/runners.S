/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the runners of runtime/ into the program as they are. */
	.section .rodata
	.global python_start_py
	.global python_start_py_end
	.global python_made
	.global python_made_end
	.global javascript_js
	.global javascript_js_end
	.global shell_sh
	.global shell_sh_end
	.global java_sh
	.global java_sh_end
python_start_py:
	.incbin "python_start.py"
python_start_py_end:
	.byte 0
python_made:
	.incbin "python.made"
python_made_end:
javascript_js:
	.incbin "javascript.js"
javascript_js_end:
	.byte 0
shell_sh:
	.incbin "files.sh"
	.incbin "shell.sh"
shell_sh_end:
	.byte 0
java_sh:
	.incbin "files.sh"
	.incbin "java.sh"
java_sh_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
