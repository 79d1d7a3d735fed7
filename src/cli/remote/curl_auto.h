/* SPDX-License-Identifier: Apache-2.0 */
/* For auto_(): what libcurl gave out is given back on scope exit. */
#pragma once

#include <curl/curl.h>

static inline void curl_auto_url(CURLU **urlp)
{
	curl_url_cleanup(*urlp);
}

static inline void curl_auto_text(char **textp)
{
	curl_free(*textp);
}
