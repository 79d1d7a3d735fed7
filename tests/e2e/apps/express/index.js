const express = require('express');

const app = express();
app.get('/', (request, response) => response.json({ made: 'express' }));
app.listen(process.env.PORT || 3000);
