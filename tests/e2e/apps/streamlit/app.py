import streamlit as st

st.title("first")
st.write("Served by Streamlit in a sandbox.")
