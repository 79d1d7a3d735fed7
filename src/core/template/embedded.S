/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the table of the catalogue and the scripts of builders into the program as they are. */
	.section .rodata
	.global catalogue_json
	.global catalogue_json_end
	.global bootstrap_sh
	.global install_node_sh
	.global install_python_sh
	.global start_postgres_sh
	.global start_redis_sh
catalogue_json:
	.incbin "catalogue.json"
catalogue_json_end:
	.byte 0
bootstrap_sh:
	.incbin "bootstrap.sh"
	.byte 0
install_node_sh:
	.incbin "install_node.sh"
	.byte 0
install_python_sh:
	.incbin "install_python.sh"
	.byte 0
start_postgres_sh:
	.incbin "start_postgres.sh"
	.byte 0
start_redis_sh:
	.incbin "start_redis.sh"
	.byte 0
	.section .note.GNU-stack, "", %progbits
